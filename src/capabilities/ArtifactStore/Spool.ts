/** Writes bytes to a temporary file until all of them have arrived, because their address is known only then. */
import { createHash, randomUUID } from "node:crypto"
import { createReadStream } from "node:fs"
import * as fs from "node:fs/promises"
import * as os from "node:os"
import * as path from "node:path"
import * as NodeStream from "@effect/platform-node/NodeStream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { ArtifactStoreError } from "../ArtifactStore.ts"
import { closeAndRemove, removeAbandoned } from "./UnfinishedFiles.ts"

const failed = () => new ArtifactStoreError({ message: "The temporary file could not be written or read." })

const attempt = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: failed })

const temporaryFile = Effect.acquireRelease(
  attempt(async () => {
    const file = path.join(os.tmpdir(), `spoke-${randomUUID()}`)
    return { file, handle: await fs.open(file, "wx", 0o600) }
  }),
  closeAndRemove
)

const temporaryName = /^spoke-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/u

/** Removes the temporary files of processes that were killed. */
export const removeAbandonedSpools = Effect.flatMap(Clock.currentTimeMillis, (now) =>
  Effect.ignore(attempt(() => removeAbandoned(os.tmpdir(), temporaryName, now)))
)

/** Reads `bytes` to the end. `content` returns them, any number of times while the scope is open. */
export const spool = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>) =>
  Effect.gen(function* () {
    const { file, handle } = yield* temporaryFile
    const hash = createHash("sha256")
    let size = 0
    yield* Stream.runForEach(bytes, (chunk) =>
      attempt(async () => {
        hash.update(chunk)
        size += chunk.length
        await handle.writeFile(chunk)
      })
    )
    const ref = ArtifactRef.make(`sha256:${hash.digest("hex")}`)
    const content = NodeStream.fromReadable<ArtifactStoreError, Uint8Array>(
      () => createReadStream(file),
      failed
    )
    return { ref, size, content }
  })
