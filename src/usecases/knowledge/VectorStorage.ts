/**
 * Keeps vectors as search needs them: converts those of another encoding, and builds the indexes of large agents. In
 * the background, batch by batch; a process that dies leaves nothing to undo.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { maxComparedVectors } from "../../domain/knowledge/StoredVector.ts"
import { VectorCopiesStore } from "../../store/knowledge/VectorCopies.ts"
import {
  type ConversionCursor,
  conversionStart,
  VectorEncodingStore
} from "../../store/knowledge/VectorEncoding.ts"
import { VectorIndexStore } from "../../store/knowledge/VectorIndexes.ts"

/** Vectors per transaction: less than a tenth of a second. */
const batchSize = 250
/** Pause between two batches, for other work of the database. */
const batchPause = Duration.millis(5)
/** Interval between two reports of progress. */
const reportInterval = Duration.seconds(10)
/** Interval between two checks for work. */
const checkInterval = Duration.seconds(10)

export class VectorStorage extends Effect.Service<VectorStorage>()("usecases/knowledge/VectorStorage", {
  effect: Effect.gen(function* () {
    const encoding = yield* VectorEncodingStore
    const indexes = yield* VectorIndexStore
    const copies = yield* VectorCopiesStore

    const report = (done: number, all: number) =>
      Effect.logInfo(`${done} of ${Math.max(done, all)} vectors are converted`)

    /** Converts all vectors that wait, from the first agent to the last. Returns their number. */
    const convertPass = (all: number) =>
      Effect.gen(function* () {
        let cursor: ConversionCursor | null = conversionStart
        let done = 0
        let lastReportAt = yield* Clock.currentTimeMillis
        while (cursor !== null) {
          const { count, next }: { readonly count: number; readonly next: ConversionCursor | null } =
            yield* encoding.convert(cursor, batchSize)
          done += count
          cursor = next
          const now = yield* Clock.currentTimeMillis
          if (now - lastReportAt >= Duration.toMillis(reportInterval)) {
            lastReportAt = now
            yield* report(done, all)
          }
          yield* Effect.sleep(batchPause)
        }
        return done
      })

    /** Converts all vectors that wait; also those that another process wrote meanwhile. Returns their number. */
    const convert = Effect.gen(function* () {
      const all = yield* encoding.countWaiting
      let total = 0
      for (let done = all; done > 0; total += done) done = yield* convertPass(all - total)
      if (total > 0) yield* report(total, all)
      yield* copies.remove
      return total
    }).pipe(Effect.withSpan("VectorStorage.convert"))

    /**
     * Builds missing indexes of agents with more chunks than `largerThan`, one by one, and removes those of smaller
     * agents.
     */
    const maintainIndexes = (largerThan: number) =>
      Effect.gen(function* () {
        const change = yield* indexes.tend(largerThan)
        if (change === null) return false
        yield* Effect.logInfo(
          change.kind === "build"
            ? "A large agent has an index of its vectors"
            : "An index of vectors was removed"
        ).pipe(Effect.annotateLogs({ index: change.name, chunks: change.chunks }))
        return true
      }).pipe(Effect.repeat({ while: (more) => more }), Effect.withSpan("VectorStorage.indexes"))

    /** Runs forever. A failure is logged and retried. */
    const work = Effect.zipRight(convert, maintainIndexes(maxComparedVectors)).pipe(
      Effect.catchAllCause((cause) =>
        Effect.logWarning("Vectors could not be kept as search needs them", cause)
      ),
      Effect.repeat(Schedule.spaced(checkInterval)),
      Effect.asVoid
    )

    return { convert, maintainIndexes, work } as const
  })
}) {}
