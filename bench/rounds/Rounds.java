// SPDX-License-Identifier: MIT
// See rounds.c. What is kept is direct memory, which the JVM gets from malloc; the Java heap has garbage only.
import java.nio.ByteBuffer;
import java.util.ArrayList;

public class Rounds {
	static volatile Object garbage;

	static boolean isRight(ByteBuffer block, int value) {
		for (int i = 0; i < 10000; i++)
			if (block.get(i) != (byte)value)
				return false;
		return true;
	}

	public static void main(String[] arguments) throws Exception {
		ArrayList<ByteBuffer> kept = new ArrayList<>();
		for (int round = 1;; round++) {
			for (int n = 0; n < 8; n++) {
				ByteBuffer block = ByteBuffer.allocateDirect(10000);
				for (int i = 0; i < 10000; i++)
					block.put(i, (byte)(kept.size() % 251));
				kept.add(block);
			}
			for (int i = 0; i < 1000; i++)
				garbage = new byte[1000];
			int i = round * 7 % kept.size();
			System.out.println("ROUND " + round + " LIVE " + kept.size() * 10000L + " " + (isRight(kept.get(i), i % 251) ? "OK" : "WRONG"));
			Thread.sleep(20);
		}
	}
}
