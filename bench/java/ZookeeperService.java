// SPDX-License-Identifier: MIT
// A ZooKeeper server, and a client of it in the same JVM. A round: a node is made, read and deleted.
import java.io.File;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

public class ZookeeperService {
    static ZooKeeper client;

    static long round(long n) throws Exception {
        byte[] data = ("order " + n).getBytes(StandardCharsets.US_ASCII);
        String node = client.create("/order", data, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
        long size = client.getData(node, false, null).length + client.getChildren("/", false).size() * 0;
        client.delete(node, -1);
        return size;
    }

    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[1]);
        NIOServerCnxnFactory server = new NIOServerCnxnFactory();
        server.configure(new InetSocketAddress("127.0.0.1", 0), 64);
        server.startup(new ZooKeeperServer(new File(folder, "snapshots"), new File(folder, "transactions"), 2000));
        client = new ZooKeeper("127.0.0.1:" + server.getLocalPort(), 60000, event -> { });
        Service.serve(Integer.parseInt(arguments[0]), ZookeeperService::round);
    }
}
