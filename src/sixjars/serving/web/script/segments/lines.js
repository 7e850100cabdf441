SEGMENTS.lines = lines;
