"""
DES of one block, as the password challenge of RFB needs it.

Pure. Never use it for anything else: it has been broken for decades, and RFB has no other
standard password. Libraries are about to drop it, so it is here.

Sources: FIPS 46-3; RFC 6143, 7.2.2.
"""

from collections.abc import Sequence
from itertools import chain

__all__ = ["answer_challenge", "encrypt_block"]

# Bytes of a password that count; the rest is cut off by every client and server.
PASSWORD_BYTES = 8
# Tables of the standard: bits count from 1 at the most significant end; S-boxes row by row, in hexadecimal.
_INITIAL = bytes.fromhex(
    "3a322a221a120a023c342c241c140c043e362e261e160e06403830282018100839312921191109013b332b231b130b03"
    "3d352d251d150d053f372f271f170f07"
)
_EXPANSION = bytes.fromhex(
    "20010203040504050607080908090a0b0c0d0c0d0e0f101110111213141514151617181918191a1b1c1d1c1d1e1f2001"
)
_PERMUTATION = bytes.fromhex("100714151d0c1c11010f171a05121f0a0208180e201b0309130d1e06160b0419")
_KEY_CHOICE = bytes.fromhex(
    "39312921191109013a322a221a120a023b332b231b130b033c342c243f372f271f170f073e362e261e160e063d352d25"
    "1d150d051c140c04"
)
_ROUND_CHOICE = bytes.fromhex(
    "0e110b180105031c0f06150a17130c041a0810071b140d0229341f252f371e28332d21302c31273822352e2a32241d20"
)
_SUBSTITUTION = (
    "e4d12fb83a6c59070f74e2d1a6cb953841e8d62bfc973a50fc8249175b3ea06d",
    "f18e6b34972dc05a3d47f28ec01a69b50e7ba4d158c6932fd8a13f42b67c05e9",
    "a09e63f51dc7b428d709346a285ecbf1d6498f30b12c5ae71ad069874fe3b52c",
    "7de3069a1285bc4fd8b56f03472c1ae9a690cb7df13e52843f06a1d8945bc72e",
    "2c417ab6853fd0e9eb2c47d150fa3986421bad78f9c5630eb8c71e2d6f09a453",
    "c1af92680d34e75baf427c9561de0b389ef528c3704a1db6432c95fabe17608d",
    "4b2ef08d3c975a61d0b7491ae35c2f8614bdc37eaf6805926bd814a7950fe23c",
    "d2846fb1a93e50c71fd8a374c56b0e927b419ce206adf35821e74a8dfc90356b",
)
_ROTATIONS = (1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1)


def answer_challenge(password: str, challenge: bytes) -> bytes:
    """
    Answer to the 16 bytes of a VNC authentication challenge.

    Characters outside Latin-1 become question marks, as no server has a rule for them.
    """
    key = password.encode("latin-1", "replace")[:PASSWORD_BYTES].ljust(PASSWORD_BYTES, b"\0")
    # RFB takes the bits of each byte in the other order than the standard.
    mirrored = bytes(int(f"{byte:08b}"[::-1], 2) for byte in key)
    return b"".join(encrypt_block(mirrored, challenge[start : start + 8]) for start in (0, 8))


def encrypt_block(key: bytes, block: bytes) -> bytes:
    """Encrypt eight bytes under a key of eight bytes, whose parity bits are ignored."""
    state = _permute(_to_bits(block), _INITIAL)
    left, right = state[:32], state[32:]
    for round_key in _schedule(_to_bits(key)):
        mixed = _feistel(right, round_key)
        left, right = right, [a ^ b for a, b in zip(left, mixed, strict=True)]
    joined = [*right, *left]
    # The final permutation is the inverse of the initial one.
    final = [0] * 64
    for target, bit in zip(_INITIAL, joined, strict=True):
        final[target - 1] = bit
    return int("".join(map(str, final)), 2).to_bytes(8, "big")


def _schedule(key: Sequence[int]) -> list[list[int]]:
    chosen = _permute(key, _KEY_CHOICE)
    halves = (chosen[:28], chosen[28:])
    keys = []
    for count in _ROTATIONS:
        halves = (halves[0][count:] + halves[0][:count], halves[1][count:] + halves[1][:count])
        keys.append(_permute([*halves[0], *halves[1]], _ROUND_CHOICE))
    return keys


def _feistel(half: Sequence[int], key: Sequence[int]) -> list[int]:
    bits = [a ^ b for a, b in zip(_permute(half, _EXPANSION), key, strict=True)]
    groups = (bits[start : start + 6] for start in range(0, 48, 6))
    return _permute(list(chain.from_iterable(map(_substitute, _SUBSTITUTION, groups))), _PERMUTATION)


def _substitute(box: str, bits: Sequence[int]) -> list[int]:
    row = bits[0] * 2 + bits[5]
    column = bits[1] * 8 + bits[2] * 4 + bits[3] * 2 + bits[4]
    return [int(bit) for bit in f"{int(box[row * 16 + column], 16):04b}"]


def _permute(bits: Sequence[int], table: bytes) -> list[int]:
    return [bits[place - 1] for place in table]


def _to_bits(data: bytes) -> list[int]:
    return [int(bit) for byte in data for bit in f"{byte:08b}"]
