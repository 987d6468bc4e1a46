"""Data sets: what is loaded, in which order, and every way it can fail."""
import csv
import errno
import gzip
import hashlib
import http.server
import io
import socket
import threading
from pathlib import Path

import numpy as onp
import pooch
import pytest

from d2lps import Batches, load_data
from d2lps.training import data
from d2lps.training.data import TEST_FILES, TRAIN_FILES

FILES = TRAIN_FILES + TEST_FILES
IMAGES, LABELS = TRAIN_FILES


def labels_in_order(batches):
    return onp.concatenate([y.asnumpy() for _, y in batches])


def numbered(n, batch_size, **more):
    """Batches whose images are filled with their numbers."""
    images = onp.arange(n, dtype='uint8').repeat(28 * 28).reshape(n, 28, 28)
    return Batches(images, onp.arange(n) % 10, batch_size, **more)


def numbers_in_order(batches):
    return onp.concatenate([onp.round(X.asnumpy()[:, 0, 3, 9] * 255)
                            for X, _ in batches])


def test_batches_have_the_promised_shapes_types_and_range():
    for batches in load_data(100):
        low, high = 1, 0
        for X, y in batches:
            assert X.shape == (len(y), 1, 28, 28) and y.ndim == 1
            assert (X.dtype, y.dtype) == (onp.float32, onp.int32)
            low, high = min(low, X.min()), max(high, X.max())
            assert y.min() >= 0 and y.max() <= 9
        assert (low, high) == (0, 1)


def digits_of_the_file():
    """Pixels and labels, read without NumPy."""
    with gzip.open(Path(data.__file__).with_name('digits.csv.gz'),
                   'rt') as file:
        rows = [[int(float(one)) for one in row] for row in csv.reader(file)]
    return onp.array([row[:64] for row in rows]).reshape(-1, 8, 8), (
        onp.array([row[64] for row in rows]))


def test_digits_are_those_of_the_source():
    """As many of each as the repository's own description says."""
    images, labels = digits_of_the_file()
    assert onp.bincount(labels).tolist() == [
        178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert images.shape == (1797, 8, 8)
    assert (images.min(), images.max()) == (0, 16)


def test_digits_are_shown_moved_by_two_pixels():
    from scipy import ndimage
    small, labels = digits_of_the_file()
    train_iter, test_iter = load_data(100)
    images = onp.stack([ndimage.zoom(image / 16 * 255, 28 / 8, order=1)
                        for image in small]).round().astype('uint8')
    order = onp.random.default_rng(0).permutation(1797)
    test, train = order[:449], order[449:]
    assert (test_iter.images == images[test]).all()
    assert (test_iter.labels == labels[test]).all()
    for k, images_moved in enumerate(onp.split(train_iter.images, 9)):
        move = 0, 2 * (k // 3 - 1), 2 * (k % 3 - 1)
        assert (images_moved == ndimage.shift(images[train], move,
                                              order=0)).all()
    assert (train_iter.labels == onp.tile(labels[train], 9)).all()


def test_images_stay_with_their_labels():
    images = onp.arange(10, dtype='uint8')[:, None, None].repeat(28, 1)
    batches = Batches(images.repeat(28, 2), onp.arange(10), 4, shuffle=True)
    for X, y in list(batches):  # a later batch does not change this one
        assert (onp.round(X.asnumpy()[:, 0, 5, 7] * 255) == y.asnumpy()).all()


def test_every_example_comes_once_in_an_epoch():
    batches = numbered(50, 8, shuffle=True)
    for _ in range(3):
        assert sorted(numbers_in_order(batches)) == list(range(50))


def test_order_is_new_in_each_epoch_and_the_same_for_a_seed():
    def epochs(seed):
        batches = numbered(50, 8, shuffle=True, seed=seed)
        return [numbers_in_order(batches).tolist() for _ in range(3)]
    first, second, third = epochs(5)
    assert first != second != third != first
    assert epochs(5) == [first, second, third]
    assert first not in epochs(6)


def test_load_data_passes_the_seed_on_and_leaves_the_test_set_in_order():
    def first_labels(seed, part):
        return labels_in_order(load_data(500, seed=seed)[part]).tolist()
    assert first_labels(1, 0) == first_labels(1, 0) != first_labels(2, 0)
    assert first_labels(1, 1) == first_labels(2, 1)


@pytest.mark.parametrize('name, suffix', [
    ('mnist', '.gz'), ('fashion_mnist', '')])
def test_root_with_idx_files_is_read(idx_folder, name, suffix):
    folder = idx_folder(train=30, test=7, suffix=suffix)
    train_iter, test_iter = load_data(8, name, root=folder)
    assert sorted(labels_in_order(train_iter)) == sorted([*range(10)] * 3)
    assert labels_in_order(test_iter).tolist() == list(range(7))
    X, _ = next(iter(test_iter))
    plain = folder / ('t10k-images-idx3-ubyte' + suffix)
    with (gzip.open if suffix else open)(plain, 'rb') as file:
        pixels = onp.frombuffer(file.read()[16:], 'uint8')
    expected = pixels.reshape(7, 1, 28, 28) / 255
    onp.testing.assert_allclose(X.asnumpy(), expected, atol=1e-6)


def test_loaded_digits_cannot_be_changed():
    for batches in load_data(8):
        for array in batches.images, batches.labels:
            with pytest.raises(ValueError, match='read-only'):
                array[:4] = 0


def test_batch_larger_than_the_set_is_explained():
    assert len(load_data(12132)[0]) == 1
    with pytest.raises(ValueError, match='batch_size=12133 .* 12,132'):
        load_data(12133)


def test_root_without_files_is_explained(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        load_data(8, 'mnist', root=tmp_path)
    assert str(tmp_path) in str(error.value)
    assert all(file in str(error.value) for file in FILES)


def test_root_with_digits_is_explained(tmp_path):
    with pytest.raises(ValueError, match="root needs data='fashion"):
        load_data(8, root=tmp_path)


def changed_checksum(content):
    return content[:-6] + bytes([content[-6] ^ 255]) + content[-5:]


@pytest.mark.parametrize('suffix, damage, words', [
    ('', lambda content: content[:10], 'is not an IDX file|cut short'),
    ('', lambda content: content[:500], 'cut short'),
    ('', lambda content: b'', 'begins with nothing, expected 00000803'),
    ('.gz', changed_checksum, 'damaged or was cut short'),
    ('.gz', lambda content: gzip.compress(bytes([0, 0, 8, 1]) + bytes(96)),
     'begins with 00000801, expected 00000803')])
def test_a_damaged_file_is_explained(idx_folder, suffix, damage, words):
    file = idx_folder(suffix=suffix) / IMAGES.replace('.gz', suffix)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(ValueError, match=words) as error:
        load_data(8, 'mnist', root=file.parent)
    assert str(file) in str(error.value)


def test_label_above_nine_is_explained(idx_folder, write_idx):
    file = idx_folder() / LABELS
    write_idx(file, onp.full(60, 10))
    with pytest.raises(ValueError, match=f'{file}: labels must be from 0 to '
                                         '9; they were from 10 to 10'):
        load_data(8, 'mnist', root=file.parent)


class Handler(http.server.BaseHTTPRequestHandler):
    """Serve a folder; the first part of the address says what goes wrong."""

    def do_GET(self):
        kind, file = self.path.strip('/').split('/')
        self.server.asked.append(file)
        path = self.server.folder / file
        if kind == 'missing' or (kind == 'partly' and file in TEST_FILES):
            return self.send_error(404)
        content = path.read_bytes()
        self.send_response(200)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        if kind == 'wrong':
            content = bytes(len(content))
        self.wfile.write(content[:50 if kind == 'short' else None])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(idx_folder):
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as server:
        server.folder, server.asked = idx_folder(), []
        threading.Thread(target=server.serve_forever, args=[0.01],
                         daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def cache(server, tmp_path, monkeypatch):
    """The cache folder of a reader who loads MNIST from our server."""
    monkeypatch.setenv('no_proxy', '127.0.0.1')
    sums = {file: 'md5:' + hashlib.md5(
        (server.folder / file).read_bytes()).hexdigest() for file in FILES}
    monkeypatch.setitem(data.CHECKSUMS, 'mnist', sums)
    monkeypatch.setattr(pooch, 'os_cache', lambda name: tmp_path / name)
    return tmp_path / 'd2lps' / 'mnist'


@pytest.fixture
def mirrors(server, monkeypatch):
    """Say what the mirrors are like, in order; 'refused' has no server."""
    def use(*kinds):
        with socket.create_server(('127.0.0.1', 0)) as unused:
            closed = unused.getsockname()[1]
        urls = [f'http://127.0.0.1:{closed}/' if kind == 'refused' else
                f'http://127.0.0.1:{server.server_port}/{kind}/'
                for kind in kinds]
        monkeypatch.setitem(data.MIRRORS, 'mnist', urls)
        return urls
    return use


def files_in(folder):
    return sorted(path.name for path in folder.rglob('*') if path.is_file())


def test_download_brings_the_four_files(cache, mirrors, server):
    mirrors('good')
    train_iter, test_iter = load_data(8, 'mnist')
    assert (train_iter.num_examples, test_iter.num_examples) == (60, 20)
    assert files_in(cache) == sorted(FILES)
    assert server.asked == list(FILES)


@pytest.mark.parametrize('broken', ['missing', 'wrong', 'short', 'refused'])
def test_next_mirror_is_used_if_one_is_broken(cache, mirrors, broken):
    mirrors(broken, 'good')
    assert load_data(8, 'mnist')[0].num_examples == 60
    assert files_in(cache) == sorted(FILES)


@pytest.mark.parametrize('broken', ['wrong', 'refused'])
def test_no_mirror_works_is_explained_and_leaves_no_file(
        cache, mirrors, broken):
    urls = mirrors(broken, broken)
    with pytest.raises(OSError) as error:
        load_data(8, 'mnist')
    message = str(error.value)
    assert message.startswith(f'mnist: {FILES[0]} could not be downloaded to')
    assert str(cache) in message and all(url in message for url in urls)
    assert "data='digits'" in message and 'Call again' in message
    assert broken != 'wrong' or 'hash' in message
    assert files_in(cache) == []


def test_running_again_fetches_only_what_is_missing(cache, mirrors, server):
    mirrors('partly')
    with pytest.raises(OSError):
        load_data(8, 'mnist')
    assert files_in(cache) == sorted(TRAIN_FILES)
    server.asked.clear()
    mirrors('good')
    load_data(8, 'mnist')
    assert server.asked == list(TEST_FILES)


def break_writing(monkeypatch, problem):
    """After 100 bytes, writing what arrives raises `problem`."""
    class Breaks(io.FileIO):
        def write(self, content):
            super().write(content[:100])
            raise problem
    monkeypatch.setattr('pooch.downloaders.open', Breaks, raising=False)


def test_full_disk_is_explained_and_leaves_no_file(
        cache, mirrors, server, monkeypatch):
    mirrors('good', 'good')
    break_writing(monkeypatch, OSError(errno.ENOSPC, 'No space left'))
    with pytest.raises(OSError, match='No space left') as error:
        load_data(8, 'mnist')
    assert str(cache) in str(error.value)
    assert files_in(cache) == []
    assert len(server.asked) == 1  # another mirror cannot help
