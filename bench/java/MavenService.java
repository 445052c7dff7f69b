// SPDX-License-Identifier: MIT
// Maven, in the JVM of the service. A round: it reads a project and its parents, and validates it, in a container of its own.
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.maven.cli.MavenCli;

public class MavenService {
    static String folder;

    static synchronized long round(long n) throws Exception {
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream out = new PrintStream(said);
        if (new MavenCli().doMain(new String[] {"-o", "-q", "-B", "validate"}, folder, out, out) != 0)
            throw new Exception(said.toString());
        return n;
    }

    public static void main(String[] arguments) throws Exception {
        folder = arguments[1];
        System.setProperty("maven.multiModuleProjectDirectory", folder);
        System.setProperty("maven.repo.local", folder + "/repository");
        Files.writeString(Path.of(folder, "pom.xml"), "<project><modelVersion>4.0.0</modelVersion><groupId>memattach</groupId><artifactId>bench</artifactId>"
            + "<version>1</version><packaging>pom</packaging></project>");
        Service.serve(Integer.parseInt(arguments[0]), MavenService::round);
    }
}
