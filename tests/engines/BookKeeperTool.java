import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.nio.NioEventLoopGroup;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.common.util.OrderedExecutor;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.proto.BookieClient;
import org.apache.bookkeeper.proto.BookieClientImpl;
import org.apache.bookkeeper.proto.BookieProtocol;
import org.apache.bookkeeper.stats.NullStatsLogger;

/**
 * What bookkeeper_test.py asks of BookKeeper as a client.
 *
 * <pre>
 *   write LEDGERS COUNT RATE   makes ledgers of two copies and writes COUNT entries in turn, RATE of them in a second
 *                              (0: as fast as it can); prints how many are acknowledged, closes the ledgers, and
 *                              prints the number and the entries of each
 *   check LEDGER:ENTRIES...    reads all entries of these ledgers through the client, and each copy from the bookie
 *                              that is to have it; prints each bookie with the copies that were there
 * </pre>
 *
 * METADATA_URI is in the environment. Entry i of ledger l is "entry l i " and then BYTES bytes.
 */
public final class BookKeeperTool {
  private static final byte[] PASSWORD = "isozone".getBytes(StandardCharsets.UTF_8);
  private static final BookKeeper.DigestType DIGEST = BookKeeper.DigestType.CRC32C;
  private static final int COPIES = 2;
  private static final int BYTES = 500;
  private static final int OUTSTANDING = 500;

  private BookKeeperTool() {}

  public static void main(final String[] arguments) throws Exception {
    final List<String> rest = Arrays.asList(arguments).subList(1, arguments.length);
    try {
      switch (arguments[0]) {
        case "write" -> write(Integer.parseInt(rest.get(0)), Long.parseLong(rest.get(1)), Long.parseLong(rest.get(2)));
        case "check" -> check(rest);
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    } catch (Throwable error) {
      error.printStackTrace();
      System.exit(1);
    }
    System.exit(0); // threads of BookKeeper's client may be left
  }

  private static ClientConfiguration settings() {
    final ClientConfiguration result = new ClientConfiguration();
    result.setMetadataServiceUri(System.getenv("METADATA_URI"));
    result.setAddEntryTimeout(20);
    result.setReadEntryTimeout(20);
    return result;
  }

  private static byte[] entry(final long ledger, final long number) {
    final byte[] result = new byte[BYTES];
    Arrays.fill(result, (byte) 'x');
    final byte[] head = ("entry " + ledger + " " + number + " ").getBytes(StandardCharsets.UTF_8);
    System.arraycopy(head, 0, result, 0, head.length);
    return result;
  }

  private static void write(final int ledgers, final long count, final long rate) throws Exception {
    final AtomicInteger error = new AtomicInteger(BKException.Code.OK);
    final AtomicLong acknowledged = new AtomicLong();
    final Semaphore outstanding = new Semaphore(OUTSTANDING);
    try (BookKeeper client = new BookKeeper(settings())) {
      final List<LedgerHandle> handles = new ArrayList<>();
      for (int i = 0; i < ledgers; ++i) {
        handles.add(client.createLedger(COPIES, COPIES, COPIES, DIGEST, PASSWORD));
      }
      final long start = System.nanoTime();
      for (long i = 0; i < count; ++i) {
        final LedgerHandle ledger = handles.get((int) (i % ledgers));
        outstanding.acquire();
        ledger.asyncAddEntry(entry(ledger.getId(), i / ledgers), (code, handle, number, context) -> {
          if (code != BKException.Code.OK) {
            error.compareAndSet(BKException.Code.OK, code);
          } else {
            final long sum = acknowledged.incrementAndGet();
            if (sum % 1000 == 0) {
              System.out.println("acknowledged: " + sum);
            }
          }
          outstanding.release();
        }, null);
        if (rate > 0 && i % 100 == 99) {
          Thread.sleep(Math.max(0, i * 1000 / rate - (System.nanoTime() - start) / 1_000_000));
        }
      }
      outstanding.acquire(OUTSTANDING);
      if (error.get() != BKException.Code.OK) {
        throw BKException.create(error.get());
      }
      for (final LedgerHandle ledger : handles) {
        ledger.close();
        System.out.println("ledger " + ledger.getId() + ":" + (ledger.getLastAddConfirmed() + 1));
      }
    }
  }

  private static void check(final List<String> ledgers) throws Exception {
    final Map<BookieId, Long> copies = new TreeMap<>((one, other) -> one.toString().compareTo(other.toString()));
    final ScheduledExecutorService scheduler = Executors.newSingleThreadScheduledExecutor();
    final OrderedExecutor executor = OrderedExecutor.newBuilder().numThreads(1).name("check").build();
    try (BookKeeperAdmin admin = new BookKeeperAdmin(settings())) {
      final BookieClient bookies = new BookieClientImpl(settings(), new NioEventLoopGroup(1),
          UnpooledByteBufAllocator.DEFAULT, executor, scheduler, NullStatsLogger.INSTANCE,
          admin.getBookieAddressResolver());
      for (final String each : ledgers) {
        final String[] parts = each.split(":");
        try (LedgerHandle ledger = admin.openLedger(Long.parseLong(parts[0]))) {
          final long entries = Long.parseLong(parts[1]);
          if (ledger.getLastAddConfirmed() + 1 != entries) {
            throw new IllegalStateException(
                "ledger " + ledger.getId() + " has " + (ledger.getLastAddConfirmed() + 1) + " entries");
          }
          readThroughClient(ledger, entries);
          readCopies(bookies, ledger, entries, copies);
        }
      }
    }
    copies.forEach((bookie, count) -> System.out.println("bookie " + bookie + " " + count));
  }

  private static void readThroughClient(final LedgerHandle ledger, final long entries) throws Exception {
    for (long first = 0; first < entries; first += OUTSTANDING) {
      final Enumeration<LedgerEntry> read =
          ledger.readEntries(first, Math.min(entries, first + OUTSTANDING) - 1);
      while (read.hasMoreElements()) {
        final LedgerEntry one = read.nextElement();
        compare(ledger.getId(), one.getEntryId(), one.getEntry(), "the client");
      }
    }
  }

  private static void readCopies(final BookieClient bookies, final LedgerHandle ledger, final long entries,
      final Map<BookieId, Long> copies) throws Exception {
    final Semaphore outstanding = new Semaphore(OUTSTANDING);
    final List<Copy> reads = new ArrayList<>();
    for (long i = 0; i < entries; ++i) {
      for (final BookieId bookie : ledger.getLedgerMetadata().getAllEnsembles().floorEntry(i).getValue()) {
        outstanding.acquire();
        final Copy copy = new Copy(bookie, ledger.getId(), i, read(bookies, bookie, ledger.getId(), i));
        copy.bytes.whenComplete((bytes, error) -> outstanding.release());
        reads.add(copy);
      }
    }
    for (final Copy copy : reads) {
      try {
        copy.compare(copy.bytes);
      } catch (ExecutionException error) { // what is lost is not there a second time either
        System.out.println("read again: " + copy + ": " + error.getCause().getMessage());
        copy.compare(read(bookies, copy.bookie, copy.ledger, copy.number));
      }
      copies.merge(copy.bookie, 1L, Long::sum);
    }
  }

  private static CompletableFuture<byte[]> read(final BookieClient bookies, final BookieId bookie, final long ledger,
      final long entry) {
    final CompletableFuture<byte[]> result = new CompletableFuture<>();
    bookies.readEntry(bookie, ledger, entry, (code, id, number, buffer, context) -> {
      if (code == BKException.Code.OK) {
        final byte[] bytes = new byte[BYTES]; // what precedes them is BookKeeper's own
        buffer.getBytes(buffer.writerIndex() - BYTES, bytes);
        result.complete(bytes);
      } else {
        result.completeExceptionally(BKException.create(code));
      }
    }, null, BookieProtocol.FLAG_NONE);
    return result;
  }

  private record Copy(BookieId bookie, long ledger, long number, CompletableFuture<byte[]> bytes) {
    void compare(final CompletableFuture<byte[]> found) throws Exception {
      BookKeeperTool.compare(ledger, number, found.get(), "bookie " + bookie);
    }

    @Override
    public String toString() {
      return "ledger " + ledger + ", entry " + number + " from bookie " + bookie;
    }
  }

  private static void compare(final long ledger, final long number, final byte[] found, final String where) {
    if (!Arrays.equals(entry(ledger, number), found)) {
      throw new IllegalStateException("ledger " + ledger + ", entry " + number + " from " + where + " is another one");
    }
  }
}
