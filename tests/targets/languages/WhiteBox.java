// SPDX-License-Identifier: MIT
package jdk.test.whitebox;

/** What of HotSpot's interface for its own tests JavaWalks uses; it lies behind the JDK's own classes (-Xbootclasspath/a). */
public class WhiteBox {
    private static native void registerNatives();
    static {
        registerNatives();
    }

    public native void deoptimizeAll();
}
