import io.github.centrifugal.centrifuge.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;

/** Uses the official Java SDK and prints every event as one line of JSON. */
public class SdkClient {
    static synchronized void say(String event, String facts) {
        System.out.println("{\"event\":\"" + event + "\"" + (facts.isEmpty() ? "" : "," + facts) + "}");
        System.out.flush();
    }

    static void fail(Throwable error) {
        if (error == null) return;
        error.printStackTrace();
        System.exit(1);
    }

    static String text(byte[] data) {
        return new String(data, java.nio.charset.StandardCharsets.UTF_8);
    }

    public static void main(String[] args) throws Exception {
        String address = args[0];
        String channel = args[1];
        AtomicInteger used = new AtomicInteger();
        AtomicInteger received = new AtomicInteger();

        Options options = new Options();
        options.setMinReconnectDelay(100);
        options.setMaxReconnectDelay(500);
        options.setTokenGetter(new ConnectionTokenGetter() {
            @Override
            public void getConnectionToken(ConnectionTokenEvent event, TokenCallback callback) {
                int count = used.incrementAndGet();
                say("token", "\"count\":" + count);
                callback.Done(null, args[Math.min(count + 1, args.length - 1)]);
            }
        });

        Client client = new Client(address, options, new EventListener() {
            @Override
            public void onConnected(Client client, ConnectedEvent event) {
                say("connected", "\"client\":\"" + event.getClient() + "\"");
            }

            @Override
            public void onConnecting(Client client, ConnectingEvent event) {
                say("connecting", "\"code\":" + event.getCode());
            }

            @Override
            public void onDisconnected(Client client, DisconnectedEvent event) {
                say("disconnected", "\"code\":" + event.getCode());
            }
        });

        Subscription subscription = client.newSubscription(channel, new SubscriptionEventListener() {
            @Override
            public void onSubscribed(Subscription sub, SubscribedEvent event) {
                say("subscribed", "\"recovered\":" + event.getRecovered() + ",\"wasRecovering\":" + event.wasRecovering());
            }

            @Override
            public void onPublication(Subscription sub, PublicationEvent event) {
                say("publication", "\"offset\":" + event.getOffset() + ",\"data\":" + text(event.getData()));
                if (received.incrementAndGet() == 1) use(sub);
            }
        });
        subscription.subscribe();
        client.connect();
        Thread.currentThread().join();
    }

    static void use(Subscription subscription) {
        subscription.publish("{\"n\":2}".getBytes(), (publishError, published) -> {
            fail(publishError);
            subscription.history(new HistoryOptions.Builder().withLimit(10).build(), (historyError, history) -> {
                fail(historyError);
                say("history", "\"data\":[" + history.getPublications().stream()
                    .map(publication -> text(publication.getData())).collect(Collectors.joining(",")) + "]");
                subscription.presence((presenceError, presence) -> {
                    fail(presenceError);
                    say("presence", "\"users\":[" + presence.getClients().values().stream()
                        .map(info -> "\"" + info.getUser() + "\"").collect(Collectors.joining(",")) + "]");
                });
            });
        });
    }
}
