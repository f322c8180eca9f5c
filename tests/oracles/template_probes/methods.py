"""Methods of strings, `%`, `str.format`, and Unicode rules."""

from __future__ import annotations

PROBES = {
    "strip": [
        "[{{ blank.strip() }}]{{ 'xaxb'.strip('xb') }}{{ 'aab'.lstrip('a') }}{{ 'baa'.rstrip('a') }}{{ 'x'.strip(none) }}{{ ' x '.lstrip() }}|",
        "{{ '\\u200bx'.strip()|length }}{{ '\\u1680x\\u205f\\u3000\\x1c\\x1f\\x85\\xa0\\u2028\\u202f'.strip()|length }}{{ '\\ufeffx'.strip()|length }}",
        "{{ 'éaé'.strip('é') }}{{ '😀a😀é'.strip('é😀') }}{{ 'abc'.strip('') }}{{ 'aaa'.strip('a') }}|{{ '\\n\\n a'.strip('\\n') }}",
        "{{ 'a'.strip(1) }}",
        "{{ 'Hello'.removeprefix('He') }}{{ 'Hello'.removesuffix('lo') }}{{ 'Hello'.removeprefix('x') }}{{ 'aa'.removesuffix('') }}",
    ],
    "split": [
        "{{ ' a  b '.split() }}{{ 'a,b,,c'.split(',') }}{{ 'a,b,c'.split(',', 1) }}{{ ''.split(',') }}{{ ''.split() }}{{ 'aXXb'.split('XX') }}",
        "{{ 'abc'.split('') }}",
        "{{ 'a b c'.split(maxsplit=1) }}{{ 'a,b,c'.rsplit(',', 1) }}{{ 'a b c'.rsplit(none, 1) }}{{ 'a,b'.split(',', -1) }}{{ 'a,b'.split(',', 0) }}{{ ' a b '.split(none, 0) }}",
        "{{ ' a  b  c '.split(none, 1) }}{{ ' a  b  c '.rsplit(maxsplit=1) }}{{ 'a\\u2003b\\x1cc\\u200bd'.split() }}{{ 'a,b'.split(sep=',') }}",
        "{{ 'a\\r\\nb\\u2028c'.splitlines() }}{{ lines.splitlines() }}{{ 'a\\n'.splitlines() }}{{ 'a\\nb'.splitlines(true) }}{{ ''.splitlines() }}{{ '\\n\\n'.splitlines() }}",
        "{{ 'a=b=c'.partition('=') }}{{ 'a=b=c'.rpartition('=') }}{{ 'abc'.partition('=') }}{{ 'abc'.rpartition('=') }}",
        "{{ 'a'.partition('') }}",
        "{{ 'a'.split(1) }}",
        "{{ 'a😀b😀'.split('😀') }}{{ 'aaa'.split('aa') }}{{ 'aaa'.rsplit('aa') }}{{ messages[3].content.split('</think>')[0].split('<think>')[-1] }}",
        "{{ 'a.b.c'.split('.')[-1] }}{{ 'a b'.split(' ', 1)[1] }}{{ text.split()[0][1:] }}{{ 'x'.split(',')[1] is defined }}",
    ],
    "search": [
        "{{ text.startswith('He') }}{{ text.startswith(('x', 'H')) }}{{ text.endswith('ld') }}{{ text.endswith(()) }}{{ text.startswith('') }}{{ text.startswith('W', 6) }}",
        "{{ text.startswith(['H']) }}",
        "{{ text.startswith(1) }}",
        "{{ text.startswith(none) }}",
        "{{ text.find('o') }}{{ text.rfind('o') }}{{ text.find('zz') }}{{ text.find('o', 5) }}{{ text.find('o', 5, 6) }}{{ text.find('') }}{{ text.rfind('') }}{{ '😀é'.find('é') }}",
        "{{ text.count('o') }}{{ text.count('') }}{{ 'aaa'.count('aa') }}{{ text.count('o', 5) }}{{ '😀é'.count('') }}{{ text.index('W') }}",
        "{{ text.index('zz') }}",
        "{{ text.endswith('lo', 0, 5) }}{{ text.startswith('llo', 2, 5) }}{{ text.find('l', -3) }}{{ text.rindex('l') }}",
    ],
    "replace and join": [
        "{{ 'aaa'.replace('a', 'b', 2) }}{{ 'aaa'.replace('a', 'b') }}{{ 'ab'.replace('', '-') }}{{ 'ab'.replace('', '-', 2) }}{{ 'aaa'.replace('a', '', -1) }}{{ 'aaaa'.replace('aa', 'a') }}",
        "{{ 'a'.replace('a', 1) }}",
        "{{ 'a'.replace('a') }}",
        "{{ ','.join(['a', 'b']) }}{{ ','.join('abc') }}{{ ''.join([]) }}{{ ','.join(plain) }}{{ ','.join(words|map('upper')) }}{{ '😀'.join(['é', 'a']) }}",
        "{{ ','.join([1]) }}",
        "{{ ','.join(['a', none]) }}",
        "{{ ','.join(5) }}",
    ],
    "case": [
        "{{ letters.upper() }}|{{ letters.lower() }}|{{ letters.title() }}|{{ letters.capitalize() }}|{{ letters.swapcase() }}|{{ letters.casefold() }}",
        "{{ \"it's o-k a.b\".title() }}{{ 'ǆ'.title() }}{{ 'ǆ'.capitalize() }}{{ 'ﬁx'.title() }}{{ 'ßa'.capitalize() }}{{ '1a b2c'.title() }}",
        "{{ 'ΑΣ'.lower() }}{{ 'ΑΣΑ'.lower() }}{{ 'Σ'.lower() }}{{ \"ΑΣ'Α\".lower() }}{{ 'ΑΣ\\u0301'.lower() }}{{ 'A\\u00adΣ'.lower() }}{{ 'ΑΣ.Β'.lower() }}",
        "{{ 'İ'.lower()|length }}{{ 'ß'.upper() }}{{ 'ﬀ'.upper() }}{{ 'ᾳ'.upper() }}{{ 'ᾼ'.lower() }}{{ 'ΐ'.title() }}{{ 'ı'.upper() }}{{ 'ſ'.upper() }}{{ '𐐨'.upper() }}",
    ],
    "kinds": [
        (
            "{% for s in ['abc', 'ABC', 'aB', '12', '½', '٣', 'a1', ' ', '', 'é', '\\u3000', '_', '²', 'Ⅷ', '五'] %}"
            "{{ s.isdigit() }}{{ s.isalpha() }}{{ s.isalnum() }}{{ s.isspace() }}{{ s.isupper() }}{{ s.islower() }};{% endfor %}"
        ),
        "{% for s in ['12', '½', '٣', '²', 'Ⅷ', '五', '', 'a', '1_0', '１'] %}{{ s.isnumeric() }}{{ s.isdecimal() }}{{ s.isidentifier() }}{{ s.isascii() }}{{ s.isprintable() }}{{ s.istitle() }};{% endfor %}",
        "{{ 'Hello World'.istitle() }}{{ 'Hello world'.istitle() }}{{ 'ǅa'.istitle() }}{{ 'a\\n'.isprintable() }}{{ 'é'.isascii() }}",
    ],
    "padding": [
        "{{ 'a'.ljust(3) }}|{{ 'a'.rjust(3, '-') }}|{{ 'a'.center(4, '*') }}|{{ 'ab'.center(5, '*') }}|{{ '-5'.zfill(4) }}|{{ '5'.zfill(3) }}|{{ '😀'.ljust(2, '-') }}",
        "{{ 'a'.ljust(3, '--') }}",
        "{{ 'a\\tb'.expandtabs(4) }}|{{ '\\t\\ta'.expandtabs() }}|{{ 'ab\\nc\\td'.expandtabs(4) }}",
    ],
    "percent": [
        "{{ '%s-%02d' % ('a', 3) }}{{ '%s' % text }}{{ '%d%%' % 5 }}{{ '%s' % none }}{{ '%s' % [1, 'a'] }}{{ '%s' % ((1, 2),) }}{{ '%r' % 'a' }}",
        "{{ '%(a)s %(b)d' % {'a': 1, 'b': 2} }}{{ '%5s|%-5s|%.2s' % ('a', 'b', 'cde') }}{{ '%+d % d' % (1, 2) }}{{ '%x %X %o %#x' % (255, 255, 8, 255) }}",
        "{{ '%.3f %5.1f %e %g %G' % (3.14159, 2.25, 12345.678, 0.0001, 1e-10) }}{{ '%c%c' % ('a', 98) }}{{ '%i' % 3.9 }}{{ '%s' % 1.0 }}",
        "{{ '%s %s' % 'a' }}",
        "{{ '%s' % ('a', 'b') }}",
        "{{ '%d' % 'a' }}",
        "{{ 'a' % 1 }}",
        "{{ 'a' % {} }}{{ '%%' % () }}{{ '%s' % {'a': 1} }}",
    ],
    "format": [
        "{{ '{} {a:>4} {{}}'.format('x', a=3) }}{{ '{0}{1}{0}'.format('a', 'b') }}{{ '{a}'.format(a=1) }}{{ '{}'.format(none) }}{{ '{}'.format([1, 'a']) }}",
        "{{ '{!r}'.format('a') }}{{ '{:5}|{:<5}|{:^5}|{:>5}'.format('a', 'b', 'c', 'd') }}{{ '{:05d}'.format(42) }}{{ '{:.2f}'.format(3.14159) }}{{ '{:,}'.format(1234567) }}",
        "{{ '{a[0]}'.format(a=[5]) }}{{ '{a[k]}'.format(a={'k': 1}) }}{{ '{0[k]}'.format({'k': 2}) }}",
        "{{ '{} {}'.format('a') }}",
        "{{ '{'.format() }}",
        "{{ '}'.format() }}",
        "{{ '{a}'.format() }}",
        "{{ '{0.__class__}'.format('a') }}",
        "{{ '{} {0}'.format('a') }}",
        "{{ 'plain'.format(1, 2) }}{{ '{{x}}'.format() }}{{ '{i}: {v}'.format(i=1, v='é😀') }}{{ '{:*^7}'.format('é') }}",
    ],
    "dict methods": [
        "{{ plain.get('a') }}{{ plain.get('zz', {}).get('y', 3) }}{{ plain.items()|list }}{{ plain.keys()|list }}{{ plain.values()|list }}{{ plain.items()|length }}",
        "{{ plain.get([1]) }}",
        "{{ plain.items()[0] }}",
        "{{ (plain.items()|list)[0][1] }}{{ plain.keys()|join(',') }}{{ plain.values()|sum }}{{ 'a' in plain.keys() }}{{ plain.values()|list|sort }}",
    ],
    "arguments": [
        "{{ text.upper(1) }}",
        "{{ text.split(',', 1, 2) }}",
        "{{ text.replace(old='a', new='b') }}",
        "{{ text.split(zz=1) }}",
        "{{ text.nope() }}",
        "{{ seven.upper() }}",
        "{{ numbers.upper() }}",
        "{{ text.encode().decode() if no }}x",
        "{{ text.upper is string }}",
    ],
}
