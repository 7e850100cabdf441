SEGMENTS.none = (text) => [text];
