/** A real S3-compatible server on a free port, with one bucket; `broken` makes it answer 503 that many times first. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import S3rver from "s3rver"

export const bucket = "artifacts"

export const s3Server = Effect.acquireRelease(
  Effect.promise(async () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-s3-"))
    const store = new S3rver({
      directory,
      silent: true,
      allowMismatchedSignatures: false,
      configureBuckets: [{ name: bucket, configs: [] }]
    })
    await store.configureBuckets()
    const handle = store.callback()
    let broken = 0
    const server = Http.createServer((request, response) => {
      if (broken > 0) {
        broken--
        response.statusCode = 503
        response.end("<Error><Code>SlowDown</Code></Error>")
      } else handle(request, response)
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    return {
      directory,
      server,
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      breakFor: (times: number) => void (broken = times)
    }
  }),
  ({ directory, server }) =>
    Effect.promise(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      fs.rmSync(directory, { recursive: true, force: true })
    })
)
