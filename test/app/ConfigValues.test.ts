import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { describe, expect, it } from "vitest"
import { bucket, postgresUrl, redisUrl, url } from "../../src/app/config/ConfigValues.ts"

const postgres = Schema.decodeUnknownEither(postgresUrl)
const smtp = Schema.decodeUnknownEither(url("an smtp:// URL", "smtp:", "smtps:"))
const redis = Schema.decodeUnknownEither(redisUrl)

describe("The account of an address", () => {
  it("is refused in words, not by a crash, where a percent sign is not escaped", () => {
    for (const refused of [
      postgres("postgres://spoke:pa%zzword@db/spoke"),
      smtp("smtp://spoke:100%@mail"),
      redis("redis://:pa%zzword@cache"),
      redis("redis://us%er@one,two")
    ]) {
      expect(Either.isLeft(refused)).toBe(true)
      expect(String(refused)).not.toMatch(/pa%zz|100%|us%er/u)
    }
  })

  it("is taken where it is, and where there is none", () => {
    expect(postgres("postgres://spoke:pa%25word@db/spoke/")).toEqual(
      Either.right("postgres://spoke:pa%25word@db/spoke")
    )
    expect(Either.isRight(smtp("smtps://mail:465"))).toBe(true)
    expect(Either.isRight(redis("rediss://:p%40ss@one,two"))).toBe(true)
  })

  it("is taken before the folder of a socket, as the tools of PostgreSQL take it", () => {
    for (const address of [
      "postgres://spoke@/spoke?host=/run/postgresql",
      "postgresql://spoke:p%40ss@/spoke?host=/run/postgresql&application_name=one",
      "postgres:///spoke?host=/run/postgresql&user=spoke"
    ])
      expect(postgres(address)).toEqual(Either.right(address))
    expect(Either.isLeft(postgres("mysql://spoke@/spoke"))).toBe(true)
  })
})

describe("The address of Redis", () => {
  it("names a database by its number, or none", () => {
    for (const rest of ["", "/", "/0", "/15", "?db=3", "/3?family=6"])
      expect([rest, Either.isRight(redis(`redis://cache:6379${rest}`))]).toEqual([rest, true])
    for (const rest of ["/spoke", "/1/", "/-1", "/1.5", "/%31", "?db=", "?db=spoke"])
      expect([rest, Either.isLeft(redis(`redis://cache:6379${rest}`))]).toEqual([rest, true])
  })
})

describe("The address of a bucket", () => {
  const decode = Schema.decodeUnknownEither(bucket)

  it("may have a prefix, but none whose parts are dots, which URLs drop", () => {
    for (const rest of ["", "/", "/originals", "/a/b.c/..d/"])
      expect([rest, Either.isRight(decode(`s3://files${rest}`))]).toEqual([rest, true])
    for (const rest of ["/..", "/../other", "/a/./b", "/a/.."])
      expect([rest, Either.isLeft(decode(`s3://files${rest}`))]).toEqual([rest, true])
  })
})
