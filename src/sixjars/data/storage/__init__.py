"""What is kept between runs: encoded examples, features of media files, and the folder that both live in."""
