"""Images and videos as data: files by name, from folders and .zip files, and their pixels."""
