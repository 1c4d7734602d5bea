/** A catch-all route file as Next.js takes it: one instance for the process, every method handed over. */
import { createSpoke } from "spoke"

// A development server loads this file again with each change; the data directory belongs to one instance.
const spoke = (globalThis.spoke ??= createSpoke({
  dataDir: process.env.SPOKE_DATA_DIR ?? ".spoke",
  appUrl: "http://localhost:3000"
}))

const handler = async (request) => (await spoke).fetch(request)

export {
  handler as DELETE,
  handler as GET,
  handler as OPTIONS,
  handler as PATCH,
  handler as POST,
  handler as PUT
}
