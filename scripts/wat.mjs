/**
 * Assembles the WebAssembly text of `src/`, for esbuild and for Vite: an import of `NAME.wat` yields the module's
 * bytes as a Uint8Array.
 */
import * as Fs from "node:fs/promises"

const assemble = async (file) => {
  const { default: load } = await import("wabt")
  const wabt = await load()
  const module = wabt.parseWat(file, await Fs.readFile(file, "utf8"), { simd: true })
  try {
    module.resolveNames()
    module.validate()
    return module.toBinary({}).buffer
  } finally {
    module.destroy()
  }
}

/** A plugin of esbuild. */
export const watOfEsbuild = {
  name: "wat",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.wat$/ }, async ({ path }) => ({ contents: await assemble(path), loader: "binary" }))
}

/** A plugin of Vite and Vitest. */
export const watOfVite = {
  name: "wat",
  enforce: "pre",
  load: async (id) => {
    if (!id.endsWith(".wat")) return null
    const base64 = Buffer.from(await assemble(id)).toString("base64")
    return `export default Uint8Array.from(atob("${base64}"), (byte) => byte.charCodeAt(0))`
  }
}
