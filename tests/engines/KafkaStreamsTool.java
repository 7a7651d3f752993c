import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;

/**
 * What kafka_streams_test.py asks of Kafka beside the program of docs/engines/kafka-streams.md.
 *
 * <pre>
 *   topics PARTITIONS            makes the topics events and counts; waits until the broker is there
 *   produce FIRST COUNT RATE     sends events with these numbers, RATE of them in a second (0: as fast as it can)
 *   counts                       prints the last committed count of each key and window
 *   measure COUNT PROPERTIES     runs the program until it has processed COUNT events, and prints the seconds
 * </pre>
 *
 * BOOTSTRAP, KEYS, BEGIN_MS and STEP_MS are in the environment. Event i has the key "key" + i % KEYS and the time
 * BEGIN_MS + i * STEP_MS.
 */
public final class KafkaStreamsTool {
  private static final String BOOTSTRAP = System.getenv("BOOTSTRAP");
  private static final Duration POLL = Duration.ofSeconds(5);

  private KafkaStreamsTool() {}

  public static void main(final String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "topics" -> topics(Integer.parseInt(arguments[1]));
      case "produce" ->
          produce(Long.parseLong(arguments[1]), Long.parseLong(arguments[2]), Long.parseLong(arguments[3]));
      case "counts" -> counts();
      case "measure" -> measure(Long.parseLong(arguments[1]), arguments[2]);
      default -> throw new IllegalArgumentException(arguments[0]);
    }
  }

  private static Properties settings() {
    final Properties result = new Properties();
    result.put("bootstrap.servers", BOOTSTRAP);
    return result;
  }

  private static void topics(final int partitions) throws Exception {
    try (Admin admin = Admin.create(settings())) {
      admin.createTopics(List.of(new NewTopic("events", partitions, (short) 1),
          new NewTopic("counts", partitions, (short) 1))).all().get();
    }
  }

  private static void produce(final long first, final long count, final long rate) throws Exception {
    final long keys = Long.parseLong(System.getenv("KEYS"));
    final long beginMs = Long.parseLong(System.getenv("BEGIN_MS"));
    final long stepMs = Long.parseLong(System.getenv("STEP_MS"));
    final long start = System.nanoTime();
    try (KafkaProducer<String, String> producer =
        new KafkaProducer<>(settings(), new StringSerializer(), new StringSerializer())) {
      for (long i = first; i < first + count; ++i) {
        producer.send(new ProducerRecord<>("events", null, beginMs + i * stepMs, "key" + i % keys, "event"));
        if (rate > 0 && (i - first) % 100 == 99) {
          final long ahead = (i - first) * 1000 / rate - (System.nanoTime() - start) / 1_000_000;
          Thread.sleep(Math.max(0, ahead));
        }
      }
    }
  }

  private static void counts() {
    final Properties settings = settings();
    settings.put("isolation.level", "read_committed");
    final Map<String, Long> last = new TreeMap<>();
    try (KafkaConsumer<String, Long> consumer =
        new KafkaConsumer<>(settings, new StringDeserializer(), new LongDeserializer())) {
      final List<TopicPartition> partitions = consumer.partitionsFor("counts").stream()
          .map(each -> new TopicPartition("counts", each.partition())).toList();
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      final Map<TopicPartition, Long> ends = new HashMap<>(consumer.endOffsets(partitions));
      while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
        consumer.poll(POLL).forEach(record -> last.put(record.key(), record.value()));
      }
    }
    last.forEach((key, value) -> System.out.println(key + " " + value));
  }

  private static void measure(final long count, final String file) throws Exception {
    final KafkaStreams streams = WindowedCount.start(file);
    try {
      while (streams.state() != KafkaStreams.State.RUNNING) {
        Thread.sleep(5);
      }
      final long start = System.nanoTime();
      while (processed(streams) < count) {
        Thread.sleep(5);
      }
      System.out.printf("seconds: %.3f%n", (System.nanoTime() - start) / 1e9);
    } finally {
      streams.close();
    }
  }

  private static double processed(final KafkaStreams streams) {
    return streams.metrics().entrySet().stream()
        .filter(each -> each.getKey().name().equals("process-total")
            && each.getKey().group().equals("stream-thread-metrics"))
        .mapToDouble(each -> (Double) each.getValue().metricValue()).sum();
  }
}
