package org.rocksdb;

import java.util.function.LongConsumer;

/**
 * An Env of {@code org.isozone.Isozone}. It is in this package because only classes of it can extend Env. (A RocksEnv
 * cannot take its place: closing one fails in releases from 9 on.)
 */
public final class IsozoneEnv extends Env {
  private final LongConsumer dispose;

  private IsozoneEnv(final long handle, final LongConsumer dispose) {
    super(handle);
    this.dispose = dispose;
  }

  /** For Isozone alone. {@code handle}: a rocksdb::Env*, which {@code dispose} gets when the Env is closed. */
  public static Env of(final long handle, final LongConsumer dispose) {
    return new IsozoneEnv(handle, dispose);
  }

  /**
   * For Isozone alone. The rocksdb::Options* of {@code options} itself, also where its class sends what is set to other
   * ones, as that of Kafka Streams does.
   */
  public static long handle(final Options options) {
    return options.nativeHandle_;
  }

  @Override
  protected void disposeInternal(final long handle) {
    dispose.accept(handle);
  }
}
