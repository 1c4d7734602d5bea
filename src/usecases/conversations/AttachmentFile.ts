/** The stored file of a message. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ArtifactStore } from "../../capabilities/ArtifactStore.ts"
import type { StoredAttachment } from "../../domain/channels/Attachment.ts"
import { NotFound, ServiceUnavailable } from "../../domain/Errors.ts"
import type { ArtifactRef } from "../../domain/knowledge/Source.ts"

export const noFile = () => new NotFound({ message: "The conversation has no such file." })

const unreadable = () => new ServiceUnavailable({ message: "The file cannot be read now. Try again later." })

/** Adds the bytes to what is stored about a file. NOT_FOUND if either is missing. */
export const readAttachment = (
  artifacts: ArtifactStore["Type"],
  artifact: ArtifactRef,
  stored: Option.Option<StoredAttachment>
) =>
  Effect.gen(function* () {
    if (Option.isNone(stored)) return yield* noFile()
    const bytes = yield* artifacts.get(artifact).pipe(
      Effect.tapError(({ message }) => Effect.logError("A file of a message could not be read", message)),
      Effect.mapError(unreadable)
    )
    return Option.isSome(bytes) ? { ...stored.value, bytes: bytes.value } : yield* noFile()
  })
