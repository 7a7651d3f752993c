package org.isozone;

/** The functions of libisozone_java.so (java.cc). Text is UTF-8; an error is returned as text, null: none. */
final class Native {
  private Native() {}

  static native byte[] version();

  static native byte[] format(byte[] uri, boolean force);

  /** handle[0] becomes a rocksdb::Env*, for {@link #close}. */
  static native byte[] open(byte[] uri, long[] handle);

  /** {@code options}: a rocksdb::Options*. */
  static native void setEnv(long options, long env);

  static native void close(long env);

  /** result[0] becomes the names in the directory, each ended by a slash. */
  static native byte[] children(long env, byte[] directory, byte[][] result);

  /** result[0] becomes the JSON. */
  static native byte[] statistics(long env, byte[][] result);

  static native byte[] collectGarbage(long env, double untilFreePercent);
}
