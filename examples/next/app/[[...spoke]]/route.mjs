/** A catch-all route file for Next.js: one instance for the process, all methods are passed on. */
import { createSpoke } from "spoke"

// A development server reloads this file with each change, but only one instance may use the data directory. When it
// cannot be opened, the next request tries again.
const open = () =>
  (globalThis.spoke ??= createSpoke({
    dataDir: process.env.SPOKE_DATA_DIR ?? ".spoke",
    appUrl: "http://localhost:3000"
  }).catch((cause) => {
    globalThis.spoke = undefined
    throw cause
  }))

const handler = async (request) => (await open()).fetch(request)

export {
  handler as DELETE,
  handler as GET,
  handler as OPTIONS,
  handler as PATCH,
  handler as POST,
  handler as PUT
}
