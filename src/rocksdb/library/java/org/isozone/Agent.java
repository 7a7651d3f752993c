package org.isozone;

/**
 * {@code java -javaagent:isozone-java.jar}: registers isozone:// before the program begins, for programs that can name
 * an Env in an options file, but cannot be changed.
 */
public final class Agent {
  private Agent() {}

  /** Called by Java. Ends the process with one line if the program's rocksdbjni does not fit. */
  public static void premain(final String arguments) {
    try {
      Isozone.load();
    } catch (NoClassDefFoundError error) {
      fail("rocksdbjni is not on the class path of the program");
    } catch (Exception error) { // a RocksDBException, which is not there if rocksdbjni is not
      fail(error.getMessage());
    }
  }

  private static void fail(final String reason) {
    System.err.println("isozone-java: " + reason);
    Runtime.getRuntime().halt(1);
  }
}
