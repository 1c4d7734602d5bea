/** Example requests and responses for the full description, by operation id. */

interface Example {
  readonly request?: unknown
  /** `data` of the envelope, or the text of a stream. */
  readonly answer?: unknown
}

const citation = {
  index: 1,
  sourceId: "src_01k00000000000000000000000",
  sourceName: "Handbook",
  documentId: "doc_01k00000000000000000000000",
  chunkId: "chk_01k00000000000000000000000",
  title: "Returns",
  url: "https://example.com/handbook",
  text: "Hats can be returned within 30 days.",
  score: 0.71,
  start: 0,
  end: 17,
  span: "within 30 days",
  supported: "yes"
}

const source = {
  id: "src_01k00000000000000000000000",
  agentId: "agt_01k00000000000000000000000",
  name: "Handbook",
  type: "URL",
  status: "READY",
  config: { url: "https://example.com/handbook" },
  lastSyncedAt: "2026-01-02T03:04:05.678Z",
  lastError: null,
  latestJob: {
    id: "job_01k00000000000000000000000",
    type: "INGEST",
    status: "SUCCEEDED",
    progress: 100,
    chunksCreated: 12,
    error: null
  }
}

/** The result of the example turn. */
const result = {
  reply: "You have 30 days [1].",
  conversationId: "cnv_01k00000000000000000000000",
  endUserId: "usr_01k00000000000000000000000",
  citations: [citation],
  media: []
}

const stream = [
  ": stream-open",
  'data: {"type":"start"}',
  'data: {"type":"start-step"}',
  'data: {"type":"text-start","id":"txt_1"}',
  'data: {"type":"text-delta","id":"txt_1","delta":"You have 30 days [1"}',
  `data: {"type":"source-url","sourceId":"${citation.chunkId}","url":"${citation.url}","title":"${citation.title}","providerMetadata":{"spoke":{"index":1}}}`,
  'data: {"type":"text-delta","id":"txt_1","delta":"]."}',
  'data: {"type":"text-end","id":"txt_1"}',
  'data: {"type":"finish-step"}',
  'data: {"type":"finish","finishReason":"stop"}',
  `data: ${JSON.stringify({ type: "data-done", data: { result } })}`,
  "data: [DONE]"
]

export const examples: Readonly<Record<string, Example>> = {
  "chat.complete": {
    request: { message: "How long do I have to return a hat?", externalEndUserId: "customer-17" },
    answer: {
      ...result,
      runId: "run_01k00000000000000000000000",
      realtimeToken: "eyJjIjoiY252XzAxayJ9.c2lnbmVk",
      realtimeUrl: "wss://spoke.example.com/api/realtime"
    }
  },
  "chat.stream": {
    request: { message: "How long do I have to return a hat?" },
    answer: stream.map((frame) => `${frame}\n\n`).join("")
  },
  "openai.completions": {
    request: {
      model: "agt_01k00000000000000000000000",
      messages: [{ role: "user", content: "How long do I have to return a hat?" }]
    },
    answer: {
      id: "chatcmpl-req_01k00000000000000000000000",
      object: "chat.completion",
      created: 1767323045,
      model: "agt_01k00000000000000000000000",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "You have 30 days [1].", refusal: null },
          logprobs: null,
          finish_reason: "stop"
        }
      ],
      usage: { prompt_tokens: 412, completion_tokens: 9, total_tokens: 421 },
      spoke: { runId: null, citations: [citation] }
    }
  },
  "retrieve.retrieve": {
    request: { query: "returns", topK: 3 },
    answer: {
      chunks: [
        {
          id: "chk_01k00000000000000000000000",
          documentId: "doc_01k00000000000000000000000",
          sourceName: "Handbook",
          text: "Hats can be returned within 30 days.",
          score: 0.71,
          url: "https://example.com/handbook"
        }
      ]
    }
  },
  "visitorTokens.create": {
    request: { externalEndUserId: "customer-17", sourceScope: { labels: ["partners"] }, expiresIn: 3_600 },
    answer: {
      visitorToken: "eyJ0ZW5hbnRJZCI6InRlbl8wMWsifQ.c2lnbmVk",
      expiresAt: "2026-01-02T03:04:05.678Z",
      sourceScope: { labels: ["partners"] }
    }
  },
  "sources.create": {
    request: { type: "URL", name: "Handbook", config: { url: "https://example.com/handbook" } }
  },
  "sources.patch": { request: { name: "Handbook 2026" } },
  "sources.sync": { request: { force: true } },
  "sources.list": { answer: { sources: [source], nextCursor: null } },
  "usage.current": {
    answer: {
      period: { start: "2026-01-01T00:00:00.000Z", end: "2026-02-01T00:00:00.000Z" },
      turns: { used: 128, limit: 1000, overageEnabled: false },
      ingestionJobs: { used: 4, limit: 100 },
      sources: { active: 2, limit: 10 },
      tokens: { input: 96000, output: 21000 }
    }
  }
}
