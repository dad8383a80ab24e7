import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

public class T {
    public static void main(String[] arguments) throws Exception {
        byte[] data = Files.readAllBytes(Path.of("data.bin"));
        System.out.println(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(data)));

        ByteBuffer direct = ByteBuffer.allocateDirect(data.length);
        direct.put(data).flip();
        byte[] back = new byte[data.length];
        direct.get(back);
        System.out.println(Arrays.equals(data, back));

        CRC32 crc = new CRC32();
        crc.update(back);
        System.out.println(crc.getValue());
        Deflater deflater = new Deflater(1);
        deflater.setInput(data, 0, 4_000_000);
        deflater.finish();
        byte[] packed = new byte[5_000_000];
        int length = deflater.deflate(packed);
        crc.reset();
        crc.update(packed, 0, length);
        System.out.println(length + " " + crc.getValue());

        Map<String, Integer> count = new TreeMap<>();
        for (String line : Files.readAllLines(Path.of("words.txt")))
            for (String word : line.split(" "))
                count.merge(word, 1, Integer::sum);
        System.out.println(count.hashCode());

        List<byte[]> keep = new ArrayList<>();
        long sum = 0;
        for (int i = 0; i < 20_000; i++) {
            byte[] piece = Arrays.copyOfRange(data, i, i + i % 5000);
            keep.add(piece);
            if (keep.size() > 900)
                sum += keep.remove(i % 900).length;
            System.arraycopy(piece, 0, data, i, piece.length / 2);
        }
        System.out.println(sum + " " + Arrays.hashCode(data));
    }
}
