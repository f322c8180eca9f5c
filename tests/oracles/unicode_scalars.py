"""Every Unicode scalar, for tests that leave none out."""

SCALARS = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
