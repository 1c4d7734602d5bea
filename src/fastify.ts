/** `import { spoke } from "spoke/fastify"`: the API of an instance in this process as a Fastify plugin. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { answer } from "./app/mount/NodeRequests.ts"
import { type Mounted, mountedInstance } from "./app/mount/MountedInstance.ts"

export type { Mounted } from "./app/mount/MountedInstance.ts"

interface Reply {
  readonly raw: ServerResponse
  readonly hijack: () => unknown
}

/** The used members of Fastify, so that any version of the host works. */
interface Application {
  readonly prefix: string
  readonly removeAllContentTypeParsers: () => unknown
  readonly addContentTypeParser: (
    type: string,
    parser: (request: unknown, payload: unknown, done: (error: null) => void) => void
  ) => unknown
  readonly all: (
    path: string,
    handler: (request: { readonly raw: IncomingMessage }, reply: Reply) => Promise<unknown>
  ) => unknown
  readonly addHook: (name: "onClose", hook: () => Promise<void>) => unknown
}

/**
 * `app.register(spoke({ dataDir }), { prefix })`. Bodies are not parsed for the routes below the prefix. The instance
 * closes with the application.
 */
export const spoke = (mounted: Mounted = {}) => {
  const { close, open } = mountedInstance(mounted)
  return async (app: Application): Promise<void> => {
    app.removeAllContentTypeParsers()
    app.addContentTypeParser("*", (_request, _payload, done) => done(null))
    app.all("/*", async ({ raw }, reply) => {
      const instance = await open()
      reply.hijack()
      const path = (raw.url ?? "/").slice(app.prefix.length)
      await answer(instance, raw, reply.raw, path.startsWith("/") ? path : `/${path}`).catch(
        (cause: unknown) => {
          // Fastify only logs it, because the reply is ours.
          if (reply.raw.headersSent) reply.raw.destroy()
          else reply.raw.writeHead(cause instanceof TypeError ? 400 : 500).end()
          throw cause
        }
      )
    })
    app.addHook("onClose", close)
  }
}
