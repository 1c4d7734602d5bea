/**
 * A `PgClient` over a pool that sends statements directly to a connection. The library's own statements create a span
 * and a scope and take some fifty steps. They are used only where a request is traced or statements are transformed.
 */
import type * as Reactivity from "@effect/experimental/Reactivity"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import * as Statement from "@effect/sql/Statement"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type * as Pg from "pg"
import { scopedConnection, PooledStatements } from "./Connection.ts"
import { makeFairConnections } from "./FairConnection.ts"
import type { PreparedStatements } from "./PreparedStatements.ts"

type Rows = Effect.Effect<ReadonlyArray<unknown>, SqlError>

interface Executable {
  readonly compile: () => readonly [text: string, params: ReadonlyArray<unknown>]
  readonly commit: () => Rows
}

const isExecutable = (made: unknown): made is Executable =>
  typeof made === "object" && made !== null && "compile" in made && "commit" in made

/** Runs `statement` on the transaction of its fiber, else on `connection`. */
const commitOn = (connection: Connection, statement: Executable) => {
  const { commit: commitTraced } = statement
  return (): Rows =>
    Effect.withFiberRuntime((fiber) => {
      const isTraced =
        fiber.getFiberRef(FiberRef.currentTracerEnabled) ||
        Option.isSome(fiber.getFiberRef(Statement.currentTransformer))
      if (isTraced) return Reflect.apply(commitTraced, statement, [])
      const transaction = Context.getOption(fiber.currentContext, SqlClient.TransactionConnection)
      const target = Option.isSome(transaction) ? transaction.value[0] : connection
      const [text, params] = statement.compile()
      return target.execute(text, params, undefined)
    })
}

/** The result of `make`. A statement is replaced by one that is sent directly to `connection`. */
const sendDirectly =
  (connection: Connection, make: (...given: ReadonlyArray<never>) => unknown) =>
  (...given: ReadonlyArray<unknown>) => {
    const made: unknown = Reflect.apply(make, undefined, given)
    if (isExecutable(made)) Object.defineProperty(made, "commit", { value: commitOn(connection, made) })
    return made
  }

/** The caller closes the pool. Tenants' statements run as `tenantRole`; null without row level security. */
export const clientOfPool = (
  pool: Pg.Pool,
  prepared: PreparedStatements,
  tenantRole: string | null
): Effect.Effect<PgClient.PgClient, SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function* () {
    const { config, json, listen, notify } = yield* PgClient.fromPool({ acquire: Effect.succeed(pool) })
    const { connection, transactionConnection } = makeFairConnections(
      pool,
      new PooledStatements(pool, prepared, tenantRole),
      scopedConnection(pool, tenantRole)
    )
    const client = yield* SqlClient.make({
      acquirer: Effect.succeed(connection),
      transactionAcquirer: transactionConnection,
      compiler: PgClient.makeCompiler(),
      spanAttributes: [["db.system.name", "postgresql"]]
    })
    return Object.assign(sendDirectly(connection, client), client, {
      unsafe: sendDirectly(connection, client.unsafe),
      [PgClient.TypeId]: PgClient.TypeId,
      config,
      json,
      listen,
      notify
    })
  })
