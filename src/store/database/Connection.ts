/**
 * Statements on the connections of a pool. An interrupted caller waits for nothing and cancels nothing: its statement runs
 * to its end, and only then others get the connection. (`PgClient` asks the server to cancel what that connection runs,
 * which by then may be another caller's statement.)
 */
import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Pg from "pg"
import { sqlErrorOf } from "./Failure.ts"
import type { Prepared } from "./Prepared.ts"

interface Query {
  readonly text: string
  readonly values: Array<unknown>
  readonly name?: string
  readonly rowMode?: "array"
}

type Answer = Pg.QueryResult | ReadonlyArray<Pg.QueryResult>
type Done = (answer: Effect.Effect<Answer, SqlError>) => void

/** The driver answers several statements of one text with several results. */
const isSeveral = (answer: Answer): answer is ReadonlyArray<Pg.QueryResult> => Array.isArray(answer)

const rowsOf = (answer: Answer): ReadonlyArray<object> =>
  isSeveral(answer) ? answer.map(({ rows }) => rows) : answer.rows

const listsOf = (answer: Answer): ReadonlyArray<ReadonlyArray<unknown>> =>
  isSeveral(answer) ? [] : answer.rows

const unconnected = (error: Error | undefined) =>
  Effect.fail(sqlErrorOf(error ?? new Error("There is no connection to the database.")))

/**
 * The server takes no writes (any more), as a primary that has become a standby: another connection may lead to the new
 * primary, this one never will.
 */
const isReadOnly = (error: Error) => "code" in error && error.code === "25006"

/** Runs one query. `onBroken` hears of an error after which the connection is of no use. */
const ask = (client: Pg.ClientBase, query: Query, onBroken: (error: Error) => void, done: Done) => {
  client.query(query, (error: Error | null, answer: Answer) => {
    if (error === null || error === undefined) return done(Effect.succeed(answer))
    if (isReadOnly(error)) onBroken(error)
    done(Effect.fail(sqlErrorOf(error, client)))
  })
}

abstract class Statements implements Connection {
  /** `often` is false for statements that are planned anew each time. */
  protected abstract run(query: Query, often?: boolean): Effect.Effect<Answer, SqlError>

  execute(text: string, params: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<object>, SqlError> {
    return Effect.map(this.run({ text, values: [...params] }), rowsOf)
  }

  executeRaw(text: string, params: ReadonlyArray<unknown>): Effect.Effect<Answer, SqlError> {
    return this.run({ text, values: [...params] })
  }

  executeValues(
    text: string,
    params: ReadonlyArray<unknown>
  ): Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>, SqlError> {
    return Effect.map(this.run({ text, values: [...params], rowMode: "array" }), listsOf)
  }

  executeUnprepared(
    text: string,
    params: ReadonlyArray<unknown>
  ): Effect.Effect<ReadonlyArray<object>, SqlError> {
    return Effect.map(this.run({ text, values: [...params] }, false), rowsOf)
  }

  /** All rows at once: a cursor would hold the only connection of the embedded database. */
  executeStream(text: string, params: ReadonlyArray<unknown>): Stream.Stream<object, SqlError> {
    return Stream.fromIterableEffect(this.execute(text, params))
  }
}

/** Each statement on any free connection. */
export class PooledStatements extends Statements {
  readonly #pool: Pg.Pool
  readonly #prepared: Prepared

  constructor(pool: Pg.Pool, prepared: Prepared) {
    super()
    this.#pool = pool
    this.#prepared = prepared
  }

  protected run(query: Query, often = true): Effect.Effect<Answer, SqlError> {
    return Effect.async<Answer, SqlError>((resume) => {
      let given = true
      this.#pool.connect((error, client, release) => {
        if (client === undefined) return resume(unconnected(error))
        // Its caller has gone.
        if (!given) return release()
        this.#ask(client, release, query, often, resume)
      })
      return Effect.sync(() => {
        given = false
      })
    })
  }

  #ask(client: Pg.PoolClient, release: (error?: Error) => void, query: Query, often: boolean, resume: Done) {
    let broken: Error | undefined
    // Without a listener a connection that breaks at work would end the process.
    const onError = (error: Error) => {
      broken = error
    }
    client.on("error", onError)
    const done: Done = (answer) => {
      client.off("error", onError)
      release(broken)
      resume(answer)
    }
    const name = often ? this.#prepared.nameOf(query.text) : undefined
    if (name === undefined) return ask(client, query, onError, done)
    client.query({ ...query, name }, (error: Error | null, answer: Answer) => {
      if (error === null || error === undefined) return done(Effect.succeed(answer))
      if (this.#prepared.failed(error)) return ask(client, query, onError, done)
      if (isReadOnly(error)) onError(error)
      return done(Effect.fail(sqlErrorOf(error, client)))
    })
  }
}

/** The statements of a transaction. None of them is kept prepared: a failed one would end the transaction. */
class HeldStatements extends Statements {
  readonly #client: Pg.PoolClient
  readonly #onBroken: (error: Error) => void

  constructor(client: Pg.PoolClient, onBroken: (error: Error) => void) {
    super()
    this.#client = client
    this.#onBroken = onBroken
  }

  protected run(query: Query): Effect.Effect<Answer, SqlError> {
    return Effect.async<Answer, SqlError>((resume) => ask(this.#client, query, this.#onBroken, resume))
  }
}

/** A connection for one holder, until the scope closes. */
export const held = (pool: Pg.Pool): Effect.Effect<Connection, SqlError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.scope, (scope) =>
      restore(
        Effect.async<{ readonly client: Pg.PoolClient; readonly release: (error?: Error) => void }, SqlError>(
          (resume) => {
            let given = true
            pool.connect((error, client, release) => {
              if (client === undefined) resume(unconnected(error))
              else if (given) resume(Effect.succeed({ client, release }))
              else release()
            })
            return Effect.sync(() => {
              given = false
            })
          }
        )
      ).pipe(
        Effect.flatMap(({ client, release }) => {
          let broken: Error | undefined
          const onError = (error: Error) => {
            broken = error
          }
          client.on("error", onError)
          const end = Effect.sync(() => {
            client.off("error", onError)
            release(broken)
          })
          return Effect.as(Scope.addFinalizer(scope, end), new HeldStatements(client, onError))
        })
      )
    )
  )
