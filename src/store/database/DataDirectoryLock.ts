/**
 * Allows one process per data directory. The embedded database takes no lock itself, so a second process would read
 * stale rows and overwrite those of the first.
 *
 * Node has no `flock`, and taking over a lock file has a race: two starting processes both see that its owner is dead,
 * and the slower one removes the lock of the faster one. So no lock is taken over. Every process creates its own file,
 * the claim, and then looks for others. Of two processes that start at the same time, the later one always sees the
 * earlier one. Any process can remove the file of a dead process at any time, because its name is never used again. All
 * data about the owner is in the name, so a file is never half written.
 */
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { execFile } from "node:child_process"
import * as Crypto from "node:crypto"
import * as Fs from "node:fs/promises"
import * as Os from "node:os"
import * as Path from "node:path"
import { codeOf } from "../../domain/ThrownErrors.ts"
import { makeFolder } from "./Folder.ts"
import { processUsing } from "./OpenFiles.ts"

/** Another process uses the directory; `pid` is its process id (in its own container, if that is another one). */
export class DataDirectoryLocked extends Schema.TaggedError<DataDirectoryLocked>()("DataDirectoryLocked", {
  message: Schema.String,
  directory: Schema.String,
  pid: Schema.Int
}) {}

/** The directory cannot be created or written. */
export class DataDirectoryUnusable extends Schema.TaggedError<DataDirectoryUnusable>()(
  "DataDirectoryUnusable",
  { message: Schema.String, directory: Schema.String }
) {}

const heartbeatInterval = Duration.seconds(2)
/**
 * Four heartbeats. A process in another container is considered dead when its file has not been touched for this long.
 */
const heartbeatTimeout = Duration.seconds(8)
/** System errors of an unusable directory, with reason and remedy. */
const reasons: ReadonlyMap<string, readonly [reason: string, remedy: string]> = new Map([
  ["EACCES", ["may not be written by this user", "Let it own the directory, or see SPOKE_DATA_DIR."]],
  ["EPERM", ["may not be written by this user", "Let it own the directory, or see SPOKE_DATA_DIR."]],
  ["EROFS", ["is on a read-only file system", "Mount it for writing, or see SPOKE_DATA_DIR."]],
  ["ENOSPC", ["is on a full disk", "Make room there, and start again."]],
  ["EDQUOT", ["is on a disk whose quota is used up", "Make room there, and start again."]]
])

/** Age in milliseconds of a claim whose owner will not withdraw it any more. */
const settledAgeMs = 1_000

/** The lock file of a process. Its name contains all other fields. */
interface Claim {
  readonly file: string
  readonly pid: number
  /** The start time of the process, only for comparison. */
  readonly started: string
  readonly pidScope: string
  /** When it was created, in milliseconds since 1970. */
  readonly since: number
}

class Contended extends Data.TaggedError("Contended")<{ readonly other: Claim; readonly settled: boolean }> {}

const pattern = /^lock\.(\d+)\.(\w+)\.(\w+)\.(\d+)\.[\w-]+$/

const parse = (directory: string, name: string): Option.Option<Claim> => {
  const [, pid, started, pidScope, since] = pattern.exec(name) ?? []
  return pid && started && pidScope && since
    ? Option.some({
        file: Path.join(directory, name),
        pid: Number(pid),
        started,
        pidScope,
        since: Number(since)
      })
    : Option.none()
}

const attempt = <A>(run: () => Promise<A>) => Effect.option(Effect.tryPromise(run))

const digest = (text: string) => Crypto.createHash("sha256").update(text).digest("hex").slice(0, 16)

/** Identifies the scope in which process ids are unique: this boot of this machine, in this container. */
const currentPidScope = Effect.gen(function* () {
  const boot = yield* attempt(() => Fs.readFile("/proc/sys/kernel/random/boot_id", "utf8"))
  const namespace = yield* attempt(() => Fs.readlink("/proc/self/ns/pid"))
  return digest(
    [Os.hostname(), Option.getOrElse(boot, () => ""), Option.getOrElse(namespace, () => "")].join()
  )
})

const startedByPs = (pid: number) =>
  Effect.async<Option.Option<string>>((resume) => {
    const child = execFile("ps", ["-o", "lstart=", "-p", String(pid)], { timeout: 5_000 }, (_, output) =>
      resume(Effect.succeed(output.trim() === "" ? Option.none() : Option.some(digest(output.trim()))))
    )
    return Effect.sync(() => child.kill())
  })

/** The start time of the process, for comparison; none when it is dead or a zombie. */
const startedAt = Effect.fnUntraced(function* (pid: number) {
  const stat = yield* attempt(() => Fs.readFile(`/proc/${pid}/stat`, "utf8"))
  if (Option.isSome(stat)) {
    // The name of the program is in parentheses and may contain any characters.
    const fields = stat.value.slice(stat.value.lastIndexOf(")") + 2).split(" ")
    return fields[0] === "Z" || fields[0] === "X" ? Option.none() : Option.fromNullable(fields[19])
  }
  return process.platform === "linux" ? Option.none<string>() : yield* startedByPs(pid)
})

/** The file is opened first, because a network file system answers stat from a cache for up to a minute. */
const touchedAt = (file: string) =>
  attempt(async () => {
    const handle = await Fs.open(file, "r")
    try {
      return (await handle.stat()).mtimeMs
    } finally {
      await handle.close()
    }
  })

/** True when the file is touched while it is watched. */
const isTouched = Effect.fnUntraced(function* (claim: Claim) {
  const first = yield* touchedAt(claim.file)
  if (Option.isNone(first)) return false
  const hasChanged = Effect.map(
    touchedAt(claim.file),
    (now) => Option.isNone(now) || now.value !== first.value
  )
  yield* hasChanged.pipe(
    Effect.repeat({ until: (changed) => changed, schedule: Schedule.spaced("250 millis") }),
    Effect.timeoutOption(heartbeatTimeout)
  )
  const last = yield* touchedAt(claim.file)
  return Option.isSome(last) && last.value !== first.value
})

const isAlive = (claim: Claim, pidScope: string) =>
  claim.pidScope === pidScope
    ? Effect.map(startedAt(claim.pid), Option.contains(claim.started))
    : // Process ids of another container are not visible here, so its heartbeat decides.
      isTouched(claim)

const remove = (file: string) => Effect.ignore(Effect.tryPromise(() => Fs.rm(file, { force: true })))

/** Claims of living processes other than `own`. Those of dead processes are removed. */
const otherLivingClaims = Effect.fnUntraced(function* (directory: string, own: string, pidScope: string) {
  const names = yield* Effect.tryPromise(() => Fs.readdir(directory))
  const claims = names
    .flatMap((name) => Option.toArray(parse(directory, name)))
    .filter(({ file }) => file !== own)
  return yield* Effect.filter(claims, (claim) =>
    Effect.tap(isAlive(claim, pidScope), (living) => (living ? Effect.void : remove(claim.file)))
  )
})

const unusable =
  (directory: string) =>
  ({ error }: Cause.UnknownException) => {
    const code = codeOf(error)
    const [reason, remedy] = reasons.get(code) ?? ["cannot be made or written", "See SPOKE_DATA_DIR."]
    return new DataDirectoryUnusable({
      directory,
      message: `The data directory ${directory} ${reason}${code === "" ? "" : ` (${code})`}. ${remedy}`
    })
  }

const locked = (directory: string, pid: number) =>
  new DataDirectoryLocked({
    directory,
    pid,
    message: `The data directory ${directory} is in use by process ${pid}. Stop that process, or choose another directory.`
  })

/** Fails when a process without our lock has the database in `directory` open. */
export const refuseIfInUse = (directory: string) =>
  Effect.suspend(() => {
    const pid = processUsing(Path.join(directory, "database"))
    return pid === undefined ? Effect.void : Effect.fail(locked(directory, pid))
  })

/** Another process has removed our claim: it considered us dead, for example after the machine was suspended. */
const lostMessage = (directory: string) =>
  `The lock of the data directory ${directory} is gone: the directory was removed, or another process has taken it while this one ` +
  "stood still. This process ends, to damage nothing."

const failIfContended = (directory: string, own: string, pidScope: string) =>
  Effect.gen(function* () {
    const [other] = yield* otherLivingClaims(directory, own, pidScope)
    const now = yield* Clock.currentTimeMillis
    if (other !== undefined) return yield* new Contended({ other, settled: now - other.since > settledAgeMs })
  })

/** Creates a claim for the life of the scope and returns its file. Withdraws it when there is another. */
const claim = (directory: string, pidScope: string, started: string) =>
  Effect.gen(function* () {
    yield* failIfContended(directory, "", pidScope)
    const since = yield* Clock.currentTimeMillis
    const name = `lock.${process.pid}.${started}.${pidScope}.${since}.${Crypto.randomUUID()}`
    const own = Path.join(directory, name)
    yield* Effect.addFinalizer(() => remove(own))
    yield* Effect.tryPromise(() => Fs.writeFile(own, "", { flag: "wx", mode: 0o600 }))
    yield* Effect.tapErrorTag(failIfContended(directory, own, pidScope), "Contended", () => remove(own))
    return own
  })

/**
 * Holds `directory` (created with mode 0700 if missing) for the life of the scope. A lock of a dead process, also after
 * `kill -9` or a power failure, is ignored. Fails within about two seconds when another process holds it, and within
 * ten when that may be in another container. When the lock is lost, `onLost` is run with the reason as a sentence.
 */
export const lockDirectory = (
  directory: string,
  onLost: (reason: string) => Effect.Effect<unknown> = () => Effect.void
): Effect.Effect<void, DataDirectoryLocked | DataDirectoryUnusable, Scope.Scope> =>
  Effect.gen(function* () {
    yield* Effect.tryPromise(() => makeFolder(directory))
    const ownStart = yield* startedAt(process.pid)
    // If processes cannot be inspected, only heartbeats tell whether one is alive.
    const pidScope = Option.isNone(ownStart) ? digest(Crypto.randomUUID()) : yield* currentPidScope
    const started = Option.getOrElse(ownStart, () => "0")
    const own = yield* Effect.retry(claim(directory, pidScope, started), {
      // Two processes that start at the same time both withdraw, so they retry after different delays.
      schedule: Schedule.jitteredWith(Schedule.spaced("150 millis"), { min: 0.1, max: 2 }),
      times: 12,
      while: (error) => error._tag === "Contended" && !error.settled
    })
    const heartbeat = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.tryPromise(() => Fs.utimes(own, now / 1_000, now / 1_000))
    ).pipe(
      Effect.as(true),
      // Other errors may be temporary.
      Effect.catchAll(({ error }) => Effect.succeed(codeOf(error) !== "ENOENT"))
    )
    yield* heartbeat.pipe(
      Effect.repeat({ while: (held) => held, schedule: Schedule.spaced(heartbeatInterval) }),
      Effect.zipRight(Effect.logFatal(lostMessage(directory))),
      Effect.zipRight(Effect.suspend(() => onLost(lostMessage(directory)))),
      Effect.interruptible,
      Effect.forkScoped
    )
  }).pipe(
    Effect.catchTags({
      Contended: ({ other }) => locked(directory, other.pid),
      UnknownException: unusable(directory)
    })
  )
