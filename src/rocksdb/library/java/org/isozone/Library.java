package org.isozone;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

/**
 * Loads libisozone_java.so from this jar, once, into the RocksDB that rocksdbjni has loaded.
 *
 * <ol>
 *   <li>rocksdbjni loads its library. Its version must be the one that this jar was built for: the layouts of C++
 *       classes differ between releases.
 *   <li>The file that it was loaded from is found in /proc/self/maps.
 *   <li>A temporary directory gets our library and a link to that file, by the name that our library looks for beside
 *       itself. The dynamic linker knows the file by its inode, and loads it no second time.
 *   <li>When ours is loaded, the directory is removed.
 * </ol>
 */
final class Library {
  private static final String ROCKSDB_NAME = "librocksdbjni-linux64.so";
  private static final String NAME = "libisozone_java.so";
  private static final Pattern MAPPED =
      Pattern.compile("(/.*/librocksdbjni[^/]*\\.so)( \\(deleted\\))?$");
  private static boolean loaded; // under the class's lock

  private Library() {}

  static synchronized void load() throws RocksDBException {
    if (loaded) {
      return;
    }
    if (!"Linux".equals(System.getProperty("os.name")) || !"amd64".equals(System.getProperty("os.arch"))) {
      throw new RocksDBException("isozone-java runs on Linux on x86-64, and not on "
          + System.getProperty("os.name") + " on " + System.getProperty("os.arch"));
    }
    RocksDB.loadLibrary();
    checkVersion();
    try {
      loadBeside(Paths.get(loadedRocksDb()));
    } catch (IOException | UnsatisfiedLinkError error) {
      throw new RocksDBException("isozone-java cannot load its library: " + error.getMessage()
          + "; java.io.tmpdir must name a directory whose files may be executed");
    }
    loaded = true;
  }

  private static void checkVersion() throws RocksDBException {
    final String builtFor = resource("rocksdb-version");
    final String found = RocksDB.rocksdbVersion().toString();
    if (!builtFor.equals(found)) {
      final String versions = resource("rocksdb-versions"); // those that scripts/build-java knows
      final boolean known = Arrays.asList(versions.split(" ")).contains(found);
      throw new RocksDBException("this isozone-java is built for rocksdbjni " + builtFor + ", but the program uses "
          + found + (known ? "; build one for it with scripts/build-java " + found
              : ", for which there is none; use one of these, for which scripts/build-java builds one: " + versions));
    }
  }

  /** The only line of a file of this jar. */
  private static String resource(final String name) throws RocksDBException {
    try (InputStream stream = Library.class.getResourceAsStream(name)) {
      if (stream == null) {
        throw new RocksDBException("isozone-java is not complete: it has no " + name);
      }
      try (Scanner scanner = new Scanner(stream, StandardCharsets.UTF_8.name())) {
        return scanner.nextLine().trim();
      }
    } catch (IOException error) {
      throw new RocksDBException("isozone-java cannot be read: " + error.getMessage());
    }
  }

  /** The file that rocksdbjni's library was loaded from. */
  private static String loadedRocksDb() throws IOException, RocksDBException {
    final Set<String> found = new TreeSet<>();
    try (Stream<String> lines = Files.lines(Paths.get("/proc/self/maps"), StandardCharsets.ISO_8859_1)) {
      lines.forEach(line -> {
        final Matcher matcher = MAPPED.matcher(line);
        if (matcher.find()) {
          found.add(matcher.group());
        }
      });
    }
    if (found.size() != 1) {
      throw new RocksDBException("isozone-java needs one library of rocksdbjni in the process, but there are "
          + found.size() + ": " + String.join(", ", found));
    }
    final String file = found.iterator().next();
    if (file.endsWith(" (deleted)")) {
      throw new RocksDBException("rocksdbjni's library was removed while it is in use (" + file
          + "); start the program again, and keep its files in java.io.tmpdir");
    }
    return new String(file.getBytes(StandardCharsets.ISO_8859_1), StandardCharsets.UTF_8);
  }

  private static void loadBeside(final Path rocksDb) throws IOException, RocksDBException {
    final Path directory = Files.createTempDirectory("isozone-java");
    final Path library = directory.resolve(NAME);
    final Path link = directory.resolve(ROCKSDB_NAME);
    try (InputStream stream = Library.class.getResourceAsStream(NAME)) {
      if (stream == null) {
        throw new RocksDBException("isozone-java is not complete: it has no " + NAME);
      }
      Files.copy(stream, library);
      Files.createSymbolicLink(link, rocksDb);
      System.load(library.toString());
    } finally {
      Files.deleteIfExists(link);
      Files.deleteIfExists(library);
      Files.deleteIfExists(directory);
    }
  }
}
