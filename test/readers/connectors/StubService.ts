/** Services on the loopback interface that answer in the shapes that their makers document, over documents that a test changes. */
import * as Http from "node:http"
import { gzipSync } from "node:zlib"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body: string
}

export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

/** What the service holds of one document; `revision` rises with each change. */
export interface Held {
  readonly title: string
  readonly text: string
  readonly revision: number
}
export type World = Map<string, Held>

export interface Service {
  readonly origin: string
  readonly world: World
  readonly asked: ReadonlyArray<Asked>
  /** Answers the request that comes as the nth from now on in another way, once. */
  readonly disturb: (nth: number, what: Disturbance) => Promise<void>
}

type Disturbance =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | { readonly hang: Deferred.Deferred<void> }
  | { readonly change: (world: World) => void }

export const json = (value: unknown, headers: Readonly<Record<string, string>> = {}): Answer => ({
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(value)
})

export const serveStub = (
  respond: (world: World, asked: Asked, origin: string) => Answer | undefined
): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<{ readonly service: Service; readonly server: Http.Server }>((resume) => {
      const world: World = new Map()
      const asked: Array<Asked> = []
      let origin = ""
      let until = 0
      let disturbance: Disturbance | undefined
      const server = Http.createServer((request, response) => {
        const parts: Array<Buffer> = []
        request.on("data", (part: Buffer) => parts.push(part))
        request.on("end", () => {
          const given: Asked = {
            method: request.method ?? "",
            path: request.url ?? "",
            headers: request.headers,
            body: Buffer.concat(parts).toString()
          }
          asked.push(given)
          let answer: Answer | undefined
          if (disturbance !== undefined && --until === 0) {
            const now = disturbance
            disturbance = undefined
            if ("hang" in now) {
              Effect.runFork(Deferred.succeed(now.hang, undefined))
              return
            }
            if ("change" in now) now.change(world)
            else answer = { ...now, body: "{}" }
          }
          answer ??= respond(world, given, origin)
          response.writeHead(answer === undefined ? 404 : (answer.status ?? 200), answer?.headers ?? {})
          response.end(answer?.body ?? "{}")
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const bound = server.address()
        origin = `http://127.0.0.1:${typeof bound === "object" && bound !== null ? bound.port : 0}`
        const disturb = (nth: number, what: Disturbance) => {
          until = nth
          disturbance = what
          return Promise.resolve()
        }
        resume(Effect.succeed({ server, service: { origin, world, asked, disturb } }))
      })
    }),
    ({ server }) =>
      Effect.async<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  ).pipe(Effect.map(({ service }) => service))

const numberOf = (text: string | null): number => (text === null ? 0 : Number(text))

/** `size` of the world's entries from `from` on, in the order of their ids, and where the rest begins. */
export const pageOf = (world: World, from: string, size: number) => {
  const ids = [...world.keys()].toSorted().filter((id) => id > from)
  const taken = ids.slice(0, size)
  const entries = taken.flatMap((id) => {
    const held = world.get(id)
    return held === undefined ? [] : [[id, held] as const]
  })
  return { entries, next: ids.length > taken.length ? (taken.at(-1) ?? null) : null }
}

export const timeOf = (revision: number): string => new Date(Date.UTC(2026, 0, 1, 0, revision)).toISOString()

const field = (header: Buffer, text: string, at: number) => header.write(text, at, "utf8")

/** A tar archive as `git archive` makes it, compressed: everything within one folder, with a pax header of the commit. */
export const tarball = (folder: string, files: ReadonlyMap<string, string>): Uint8Array => {
  const blocks: Array<Buffer> = []
  const add = (name: string, type: string, content: string) => {
    const bytes = Buffer.from(content)
    const header = Buffer.alloc(512)
    field(header, name.slice(0, 100), 0)
    field(header, "0000644\0", 100)
    field(header, `${bytes.length.toString(8).padStart(11, "0")}\0`, 124)
    field(header, type, 156)
    field(header, "ustar\0" + "00", 257)
    blocks.push(header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512))
  }
  add("pax_global_header", "g", "52 comment=0123456789012345678901234567890123456789\n")
  add(`${folder}/`, "5", "")
  for (const [path, content] of files) {
    const name = `${folder}/${path}`
    if (name.length > 100) {
      const record = ` path=${name}\n`
      const length = record.length + String(record.length + 3).length
      add("pax", "x", `${length}${record}`)
    }
    add(name, "0", content)
  }
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1_024)]))
}

export const parameter = (path: string, name: string): string =>
  new URL(path, "http://stub").searchParams.get(name) ?? ""
export const count = (path: string, name: string): number =>
  numberOf(new URL(path, "http://stub").searchParams.get(name))

/** The longest time in milliseconds for which others waited while `work` ran. */
export const longestWait = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<number, E, R> =>
  Effect.gen(function* () {
    let longest = 0
    let before = performance.now()
    const others = yield* Effect.sync(() => {
      const now = performance.now()
      longest = Math.max(longest, now - before)
      before = now
    }).pipe(Effect.zipRight(Effect.sleep("2 millis")), Effect.forever, Effect.fork)
    yield* work
    // What the end of the work made them wait counts, too.
    yield* Effect.sleep("20 millis")
    yield* Fiber.interrupt(others)
    return longest
  })
