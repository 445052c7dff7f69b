// SPDX-License-Identifier: MIT
// A round: an order is written as JSON by Jackson, compressed, and read back.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;

public class JsonService {
    public static class Item {
        public String name;
        public double price;
        public Map<String, Integer> stock;

        Item(long n) {
            name = "item " + n;
            price = n * 0.25;
            stock = Map.of("here", (int) n % 7, "there", (int) n % 11);
        }
    }

    static final ObjectMapper mapper = new ObjectMapper();

    static byte[] pack(List<Item> items) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (GZIPOutputStream out = new GZIPOutputStream(bytes)) {
            mapper.writeValue(out, Map.of("items", items));
        }
        return bytes.toByteArray();
    }

    static long sum(byte[] packed) throws Exception {
        try (GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(packed))) {
            long sum = 0;
            for (JsonNode item : mapper.readTree(in).get("items"))
                sum += item.get("stock").get("here").asInt();
            return sum;
        }
    }

    static long round(long n) throws Exception {
        List<Item> items = IntStream.range(0, 20).mapToObj(i -> new Item(n + i)).collect(Collectors.toList());
        return sum(pack(items));
    }

    public static void main(String[] arguments) throws Exception {
        Service.serve(Integer.parseInt(arguments[0]), JsonService::round);
    }
}
