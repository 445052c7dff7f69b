// SPDX-License-Identifier: MIT
// A round: ten documents are added to an index on disk, which is mapped, and it is searched; from time to time it begins anew.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.MMapDirectory;

public class LuceneService {
    static IndexWriter writer;

    static void add(SplittableRandom random) throws Exception {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 60; i++)
            text.append("word").append(random.nextInt(5000)).append(' ');
        Document document = new Document();
        document.add(new TextField("text", text.toString(), Field.Store.YES));
        writer.addDocument(document);
    }

    static long round(long n) throws Exception {
        SplittableRandom random = new SplittableRandom(n);
        if (n % 2000 == 1999)
            writer.deleteAll();
        for (int i = 0; i < 10; i++)
            add(random);
        try (DirectoryReader reader = DirectoryReader.open(writer)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            long hits = 0;
            for (int i = 0; i < 5; i++)
                hits += searcher.count(new TermQuery(new Term("text", "word" + random.nextInt(5000))));
            return hits;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createTempDirectory(Path.of(arguments[1]), "index");
        writer = new IndexWriter(new MMapDirectory(folder), new IndexWriterConfig(new StandardAnalyzer()));
        Service.serve(Integer.parseInt(arguments[0]), LuceneService::round);
    }
}
