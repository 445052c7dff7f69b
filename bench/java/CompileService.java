// SPDX-License-Identifier: MIT
// A round: javac compiles a class with lambdas, which is loaded, run, and unloaded some time later.
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.LongUnaryOperator;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

public class CompileService {
    static final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    static Path folder;

    static String source(String name) {
        StringBuilder text = new StringBuilder("import java.util.stream.*;\npublic class " + name + " implements java.util.function.LongUnaryOperator {\n");
        for (int i = 0; i < 20; i++)
            text.append("long part" + i + "(long n) { return LongStream.range(0, n % 50).map(k -> k * " + i + " + n).filter(k -> k % 3 == 0).sum(); }\n");
        text.append("public long applyAsLong(long n) { return part1(n) + part19(n); }\n}\n");
        return text.toString();
    }

    static long round(long n) throws Exception {
        String name = "Part" + n;
        Path own = Files.createDirectory(folder.resolve(name)), file = own.resolve(name + ".java");
        Files.writeString(file, source(name));
        if (compiler.run(null, null, null, "-proc:none", "-d", own.toString(), file.toString()) != 0)
            throw new Error("not compiled");
        try (URLClassLoader loader = new URLClassLoader(new URL[] {own.toUri().toURL()})) {
            return ((LongUnaryOperator) loader.loadClass(name).getDeclaredConstructor().newInstance()).applyAsLong(n);
        } finally {
            for (Path each : Files.list(own).toArray(Path[]::new))
                Files.delete(each);
            Files.delete(own);
        }
    }

    public static void main(String[] arguments) throws Exception {
        folder = Files.createTempDirectory(Path.of(arguments[1]), "classes");
        Service.serve(Integer.parseInt(arguments[0]), CompileService::round);
    }
}
