"""Parts that know no other room: options.py has the options of encoding and checks of values, platform.py asks for the system,
cache.py keeps files in the folder of caches, and visible_text.py shows control characters.
"""
