import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: "../src/binderclip/server/static",
    emptyOutDir: true,
    target: "es2022",
    // Data addresses would need a wider policy than the page has.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": "http://127.0.0.1:3210" } },
  test: { environment: "jsdom", include: ["tests/**/*.test.ts"] },
});
