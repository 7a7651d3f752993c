package org.isozone;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.rocksdb.Env;
import org.rocksdb.IsozoneEnv;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

/**
 * RocksDB on zoned flash, for Java.
 *
 * <pre>{@code
 * try (Env env = Isozone.open("isozone://emu:/data/ssd.img");
 *     Options options = new Options().setCreateIfMissing(true).setEnv(env);
 *     RocksDB database = RocksDB.open(options, "/db")) {
 *   ...
 * }
 * }</pre>
 *
 * <p>Any thread may call any method. Errors are a {@link RocksDBException} with one line that says what is wrong and
 * what to do.
 */
public final class Isozone {
  private Isozone() {}

  /**
   * Registers isozone:// with the RocksDB of rocksdbjni: options files may then name a device as {@code
   * env={id=isozone://...}}. The other methods do this by themselves. Once in a process is enough; more do nothing.
   */
  public static void load() throws RocksDBException {
    Library.load();
  }

  /** "0.1.0 (RocksDB 11.8.1)": Isozone's version, and the only one of rocksdbjni that it works with. */
  public static String version() throws RocksDBException {
    load();
    return text(Native.version());
  }

  /**
   * Writes an empty file system to the device of {@code uri}, like {@code isozone mkfs}, and makes the device if its
   * kind allows that.
   *
   * @param force also where the device has a file system already, whose data is then lost
   */
  public static void format(final String uri, final boolean force) throws RocksDBException {
    load();
    check(Native.format(bytes(uri), force));
  }

  /**
   * Mounts the device of {@code uri}, or joins the mount that this process has already, and returns an Env on it for
   * {@code setEnv}. The caller closes it after the last database on it. The device is unmounted with its last Env.
   */
  public static Env open(final String uri) throws RocksDBException {
    load();
    final long[] handle = new long[1];
    check(Native.open(bytes(uri), handle));
    return IsozoneEnv.of(handle[0], Native::close);
  }

  /**
   * Sets the Env in {@code options}, as {@code options.setEnv(env)} does. It is for the options that Kafka Streams
   * hands to a {@code rocksdb.config.setter}: these send what is set to the options that a store is opened with, but
   * its column families are listed with other ones, which then still have the Env of local files. {@code env} comes
   * from {@link #open}.
   */
  public static void setEnv(final Options options, final Env env) throws RocksDBException {
    load();
    final long handle = handle(env);
    if (!options.isOwningHandle()) {
      throw new RocksDBException("the Options are closed");
    }
    options.setEnv(env);
    Native.setEnv(IsozoneEnv.handle(options), handle);
  }

  /** The counters since the mount, as a JSON object (docs/statistics.md). {@code env} comes from {@link #open}. */
  public static String statistics(final Env env) throws RocksDBException {
    load();
    final byte[][] result = new byte[1][];
    check(Native.statistics(handle(env), result));
    return text(result[0]);
  }

  /**
   * Collects garbage now, in this thread, until {@code untilFreePercent} (0 to 100) of the space is free. Databases may
   * be in use. {@code env} comes from {@link #open}.
   */
  public static void collectGarbage(final Env env, final double untilFreePercent) throws RocksDBException {
    load();
    check(Native.collectGarbage(handle(env), untilFreePercent));
  }

  /**
   * Removes from the device each database below {@code directory} whose directory is not on the local file system. It
   * is for programs that remove a database by deleting its directory, which Java does without RocksDB. Such a program
   * calls this before it opens a database, and makes the local directory before RocksDB makes the database.
   *
   * @return how many databases were removed
   */
  public static int removeOrphans(final Env env, final Path directory) throws RocksDBException {
    load();
    synchronized (Isozone.class) { // another thread could be removing the same database
      return removeBelow(env, directory.toAbsolutePath().normalize());
    }
  }

  private static int removeBelow(final Env env, final Path directory) throws RocksDBException {
    final byte[][] result = new byte[1][];
    if (Native.children(handle(env), bytes(directory.toString()), result) != null) {
      return 0; // a file, or nothing
    }
    final List<String> names = Arrays.asList(text(result[0]).split("/"));
    if (names.contains("CURRENT")) {
      if (Files.exists(directory)) {
        return 0;
      }
      try (Options options = new Options().setEnv(env)) {
        RocksDB.destroyDB(directory.toString(), options);
      }
      return 1;
    }
    int removed = 0;
    for (final String name : names) {
      if (!name.isEmpty() && !name.equals(".") && !name.equals("..")) {
        removed += removeBelow(env, directory.resolve(name));
      }
    }
    return removed;
  }

  private static long handle(final Env env) throws RocksDBException {
    if (!(env instanceof IsozoneEnv) || !env.isOwningHandle()) {
      throw new RocksDBException("the Env is closed, or does not come from Isozone.open");
    }
    return env.getNativeHandle();
  }

  private static byte[] bytes(final String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static String text(final byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static void check(final byte[] error) throws RocksDBException {
    if (error != null) {
      throw new RocksDBException(text(error));
    }
  }
}
