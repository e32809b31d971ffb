"""Worker-init paths: a program's files and their calls, and which functions run while a worker starts."""
