"""Images and labels, whole sets in memory, as shuffled minibatches."""
import gzip
import math
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as onp

from d2lps.annotations import Array, PathLike
from d2lps.checks import checked, folder, from_zero, integer, one_of
from d2lps.engine import mx
from d2lps.units import several

Examples: TypeAlias = tuple[onp.ndarray, onp.ndarray]  # images, labels

IMAGE_SIZE = 28
TRAIN_FILES = ('train-images-idx3-ubyte.gz', 'train-labels-idx1-ubyte.gz')
TEST_FILES = ('t10k-images-idx3-ubyte.gz', 't10k-labels-idx1-ubyte.gz')
# The authors' own files and copies of them. If the checksum of a downloaded
# file is wrong, the next mirror is tried.
MIRRORS = {
    'fashion_mnist': (
        'https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/'
        'master/data/fashion/',
        'http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/'),
    'mnist': (
        'https://storage.googleapis.com/cvdf-datasets/mnist/',
        'https://ossci-datasets.s3.amazonaws.com/mnist/'),
}
CHECKSUMS = {name: dict(zip(TRAIN_FILES + TEST_FILES, sums.split()))
             for name, sums in (('fashion_mnist', """
    md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d md5:25c81989df183df01b3e8a0aad5dffbe
    md5:bef4ecab320f06d8554ea6380940ec79 md5:bb300cfdad3c16e7a12a480ee83cd310
"""), ('mnist', """
    md5:f68b3c2dcbeaaa9fbdd348bbdeb94873 md5:d53e105ee54ea40749a09fcbcd1e9432
    md5:9fb629c4189551a2d022fa330f9573f3 md5:ec29112dd5afa0611ce80d1b7f02629c
"""))}


class Batches:
    """Minibatches `(X, y)` of a set of images that stays in memory.

    X is a float32 array (b, 1, 28, 28) with values in [0, 1], y an int32
    array (b,).  The last batch may be smaller; no example is left out.  Each
    `for` loop over it is an epoch; with `shuffle` its order is new, and
    depends on nothing but `seed` and the number of the epoch.

    images: bytes (n, 28, 28). labels: whole numbers (n,) from 0 to 9.
    """

    def __init__(self, images: onp.ndarray, labels: onp.ndarray,
                 batch_size: int, shuffle: bool = False,
                 seed: int = 0) -> None:
        self.images, self.labels = images, labels
        self.num_examples, self.batch_size = len(images), batch_size
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0

    def __repr__(self) -> str:
        count = several(len(self), 'minibatch', 'minibatches')
        return (f'Batches({count} of {self.batch_size}, '
                f'{several(self.num_examples, "example")}'
                f'{", shuffled" * self.shuffle})')

    def __len__(self) -> int:
        return -(-self.num_examples // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        order = onp.arange(self.num_examples)
        if self.shuffle:
            onp.random.default_rng((self.seed, self.epoch)).shuffle(order)
        self.epoch += 1
        # Only the batch is made floats: bytes take a quarter of the memory.
        # All batches use one buffer, because new memory is slow.
        floats = onp.empty((min(self.batch_size, len(order)), 1, IMAGE_SIZE,
                            IMAGE_SIZE), 'float32')
        for start in range(0, len(order), self.batch_size):
            rows = order[start:start + self.batch_size]
            X = floats[:len(rows)]
            onp.divide(self.images[rows, None], 255, out=X, dtype='float32')
            yield (mx.np.array(X, dtype='float32'),
                   mx.np.array(self.labels[rows], dtype='int32'))


@cache
def _digits() -> tuple[Examples, Examples]:
    """1,797 scanned digits of 8x8 pixels, 0 to 16, made to fit LeNet.

    A quarter is kept for testing.  The rest is shown nine times, moved by up
    to two pixels, so that an epoch has enough steps to learn something.
    Source: the test data of Alpaydin and Kaynak 1998, *Optical Recognition
    of Handwritten Digits*, UCI Machine Learning Repository, CC BY 4.0.
    """
    from scipy import ndimage
    # In a row: the 64 pixels of an image, and which digit it is.
    table = onp.loadtxt(Path(__file__).with_name('digits.csv.gz'),
                        delimiter=',')
    small, labels = table[:, :-1].reshape(-1, 8, 8), table[:, -1]
    zoom = IMAGE_SIZE / small.shape[1]
    images = onp.stack([ndimage.zoom(image / 16 * 255, zoom, order=1)
                        for image in small]).round().astype('uint8')
    labels = labels.astype('int32')
    order = onp.random.default_rng(0).permutation(len(images))
    test, train = order[:len(order) // 4], order[len(order) // 4:]
    wide = onp.pad(images[train], ((0, 0), (2, 2), (2, 2)))  # black around
    moved = [wide[:, down:down + IMAGE_SIZE, right:right + IMAGE_SIZE]
             for down in (4, 2, 0) for right in (4, 2, 0)]
    arrays = (onp.concatenate(moved), onp.tile(labels[train], len(moved)),
              images[test], labels[test])
    for array in arrays:  # they are cached, and shared by all iterators
        array.flags.writeable = False
    return arrays[:2], arrays[2:]


def _read_idx(path, dimensions):
    """The unsigned bytes in an IDX file, plain or gz (yann.lecun.com/exdb)."""
    try:
        with (gzip.open if path.suffix == '.gz' else open)(path, 'rb') as f:
            content = f.read()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f'{path} is damaged or was cut short ({error}). '
                         'Remove it and load again.') from None
    magic, header = content[:4], 4 + 4 * dimensions
    if magic != bytes([0, 0, 8, dimensions]):
        raise ValueError(
            f'{path} is not an IDX file of {dimensions}-dimensional bytes: '
            f'it begins with {magic.hex() or "nothing"}, expected '
            f'000008{dimensions:02x}.')
    shape = [int.from_bytes(content[i:i + 4], 'big')
             for i in range(4, header, 4)]
    expected = header + math.prod(shape)
    if len(content) != expected:
        raise ValueError(f'{path} was cut short or is damaged: its header '
                         f'promises {expected:,} bytes, it has '
                         f'{len(content):,}.')
    return onp.frombuffer(content, 'uint8', offset=header).reshape(shape)


def _read_pair(image_path: Path, label_path: Path) -> Examples:
    """Images (n, 28, 28) and labels (n,) from two IDX files that match."""
    images, labels = _read_idx(image_path, 3), _read_idx(label_path, 1)
    if images.shape[1:] != (IMAGE_SIZE, IMAGE_SIZE) or not len(images):
        raise ValueError(f'{image_path}: images must be of shape (n, 28, 28); '
                         f'they were of shape {images.shape}')
    if len(images) != len(labels):
        raise ValueError(f'{label_path}: labels must be one for each of the '
                         f'{len(images):,} images; there were {len(labels):,}')
    if labels.max() > 9:
        raise ValueError(f'{label_path}: labels must be from 0 to 9; they '
                         f'were from {labels.min()} to {labels.max()}')
    return images, labels.astype('int32')


def _in_folder(root, file):
    """The path of an IDX file in the reader's own folder, plain or gz."""
    for path in (root / file, (root / file).with_suffix('')):
        if path.is_file():
            return path
    raise FileNotFoundError(f'root={str(root)!r} holds neither {file} nor '
                            f'{Path(file).stem}; it needs the four files '
                            f'{", ".join(TRAIN_FILES + TEST_FILES)}, '
                            'with or without .gz.')


def _download(name, file):
    """The path of `file` in the user's cache folder, fetched if need be."""
    import pooch
    folder, problems = pooch.os_cache('d2lps') / name, []
    for mirror in MIRRORS[name]:
        try:
            return Path(pooch.retrieve(
                mirror + file, CHECKSUMS[name][file], fname=file,
                path=folder, progressbar=True))
        except (OSError, ValueError) as error:  # network, disk, checksum
            problems.append(f'- {mirror}: {error}')
            # (pooch raises a PermissionError of its own, without a number)
            if (isinstance(error, PermissionError)
                    or getattr(error, 'errno', None) is not None):
                break  # the disk's fault: no other mirror will help
    raise OSError(
        f'{name}: {file} could not be downloaded to {folder}. Call again to '
        "continue this download, or use data='digits', which needs no "
        'network, or root=FOLDER with the IDX files.\n' + '\n'.join(problems))


def _no_files_of_digits(data, root, **_):
    if data == 'digits' and root is not None:
        raise ValueError("root needs data='fashion_mnist' or 'mnist'; "
                         f"'digits' needs no files (root was {str(root)!r})")


DATA = one_of('digits', *MIRRORS)


@checked(_no_files_of_digits, batch_size=integer, data=DATA, root=folder,
         seed=from_zero)
def load_data(batch_size: int, data: str = 'digits',
              root: PathLike | None = None,
              seed: int = 0) -> tuple[Batches, Batches]:
    """Return a train and a test iterator over minibatches `(X, y)`.

    X is float32 (b, 1, 28, 28) in [0, 1], y int32 (b,).  Both iterators are
    `Batches`: `len` is the number of batches, and the train iterator brings a
    new order each epoch, the same ones again for the same `seed`.

    Args:
        batch_size: examples in a batch; at most the size of the train set.
        data: 'digits' (12,132 + 449 images, which come with d2lps),
            'fashion_mnist' or 'mnist' (60,000 + 10,000, downloaded once).
        root: a folder with the IDX files of `data`; nothing is downloaded.
        seed: a whole number of at least 0.

    Raises:
        ValueError: for a bad argument, or a file that is damaged.
        OSError: if files are missing or cannot be downloaded or stored.
    """
    if data == 'digits':
        train, test = _digits()
    else:
        images, labels, test_images, test_labels = [
            _download(data, file) if root is None else _in_folder(root, file)
            for file in TRAIN_FILES + TEST_FILES]
        train = _read_pair(images, labels)
        test = _read_pair(test_images, test_labels)
    if batch_size > len(train[0]):
        raise ValueError(f'batch_size={batch_size} is more than the '
                         f'{len(train[0]):,} training examples of {data}; '
                         'take a smaller one.')
    return (Batches(*train, batch_size, shuffle=True, seed=seed),
            Batches(*test, batch_size))
