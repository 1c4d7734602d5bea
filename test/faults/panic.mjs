/** Loaded into a server (`NODE_OPTIONS=--import`): after SIGUSR2 its engine says what it says when its log does not fit on the disk. */
import { PGlite } from "@electric-sql/pglite"

const { execProtocolStream } = PGlite.prototype
let full = false
process.on("SIGUSR2", () => {
  full = true
})
PGlite.prototype.execProtocolStream = function (...given) {
  return full
    ? Promise.resolve([{ name: "error", severity: "PANIC", message: "No space left on device" }])
    : execProtocolStream.apply(this, given)
}
