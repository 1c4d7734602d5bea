/** Writes that the database refuses once. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

/**
 * Runs the effect while the first write of a row of `table` for which `condition` holds fails with the SQLSTATE `code`,
 * such as 57P01 when the server stops. Fails unless there was such a write.
 */
export const failsOnce = <A, E, R>(
  table: string,
  condition: string,
  code: string,
  effect: Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    // A sequence also counts in transactions that are rolled back.
    const begin = sql.unsafe(`
      create sequence failed_writes;
      create function fail_write() returns trigger language plpgsql as $$
      begin
        if ${condition} and nextval('failed_writes') = 1 then raise exception 'failed' using errcode = '${code}'; end if;
        return new;
      end $$;
      create trigger fail_write before insert or update on ${table} for each row execute function fail_write()`)
    const end = sql.unsafe(`
      drop trigger fail_write on ${table};
      drop function fail_write;
      drop sequence failed_writes`)
    return yield* Effect.acquireUseRelease(
      Effect.orDie(begin),
      () =>
        Effect.tap(Effect.exit(effect), () =>
          Effect.filterOrDieMessage(
            Effect.orDie(sql<{ readonly called: boolean }>`select is_called as called from failed_writes`),
            ([row]) => row?.called === true,
            "No write has failed."
          )
        ),
      () => Effect.orDie(end)
    ).pipe(Effect.flatten)
  })
