/** Messages for failures of commands. */
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Data from "effect/Data"
import * as Option from "effect/Option"
import { isError } from "../../domain/ThrownErrors.ts"
import { CommandFailed } from "./Connection.ts"

/** The command failed, and the log has the reason. */
export class FailureLogged extends Data.TaggedError("FailureLogged") {}

/** Failures whose message is written for the user. */
const userFacingTags = new Set([
  "CannotListen",
  "CommandFailed",
  "InvalidConfig",
  "DataDirectoryError",
  "DataDirectoryLocked",
  "DataDirectoryUnusable",
  "DatabaseUnavailable",
  "IsolationUnavailable",
  "MasterSecretError",
  "MigrationError",
  "PackageMissing",
  "SqlError",
  "VectorUnavailable"
])

const isUserFacing = (thrown: unknown): thrown is Error =>
  isError(thrown) && "_tag" in thrown && userFacingTags.has(String(thrown._tag))

/** The message of the first such failure or defect; none for an unknown one. */
export const failureMessage = (cause: Cause.Cause<unknown>): Option.Option<string> =>
  Chunk.findFirst(Chunk.appendAll(Cause.failures(cause), Cause.defects(cause)), isUserFacing).pipe(
    Option.map(({ message }) => message)
  )

/** Exit code of a failed command. */
export const failureCode = (cause: Cause.Cause<unknown>): number =>
  Option.match(Cause.failureOption(cause), {
    onNone: () => 1,
    onSome: (failure) => (failure instanceof CommandFailed ? (failure.exitCode ?? 1) : 1)
  })
