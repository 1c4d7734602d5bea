/** @jsxImportSource preact */
/** A form that sends a request to this server and shows the response as it arrives. */
import { useEffect, useRef, useState } from "preact/hooks"
import type { Endpoint } from "./Description.ts"
import { curlOf, requestOf } from "./Request.ts"

/** Maximum number of displayed characters of a response. */
const maxResponseLength = 200_000

interface Answer {
  readonly status: string
  readonly text: string
}

const formatted = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

export const TryRequest = ({
  apiKey,
  base,
  operation
}: {
  readonly apiKey: string
  readonly base: string
  readonly operation: Endpoint
}) => {
  const { operationId, parameters = [], requestBody } = operation
  const example = requestBody?.content["application/json"]?.example
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const [body, setBody] = useState(example === undefined ? "{}" : JSON.stringify(example, null, 2))
  const [answer, setAnswer] = useState<Answer | null>(null)
  const activeRequest = useRef<AbortController | null>(null)
  const [isRunning, setRunning] = useState(false)
  useEffect(() => () => activeRequest.current?.abort(), [])

  const request = requestOf(operation, base, apiKey, values, body)
  const isUpload = requestBody !== undefined && request.body === null

  const send = async () => {
    const controller = new AbortController()
    activeRequest.current = controller
    setRunning(true)
    setAnswer(null)
    try {
      const { headers, method, url } = request
      const response = await fetch(url, { method, headers, body: request.body, signal: controller.signal })
      const status = `${response.status} ${response.statusText}`
      let text = ""
      const decoder = new TextDecoder()
      for (
        const reader = response.body?.getReader();
        reader !== undefined && text.length <= maxResponseLength;
      ) {
        const { done, value } = await reader.read()
        if (done) break
        text += decoder.decode(value, { stream: true })
        setAnswer({ status, text })
      }
      if (text.length <= maxResponseLength) return setAnswer({ status, text: formatted(text) })
      // Closes the stream, which is not read further.
      controller.abort()
      const truncation = `cut off after ${maxResponseLength.toLocaleString("en")} characters`
      setAnswer({ status: `${status}, ${truncation}`, text: text.slice(0, maxResponseLength) })
    } catch {
      setAnswer((previous) => ({
        status: controller.signal.aborted ? "Stopped" : "The server could not be reached.",
        text: previous?.text ?? ""
      }))
    } finally {
      setRunning(false)
    }
  }

  return (
    <details>
      <summary>Try it</summary>
      {parameters.map(({ in: location, name, required = false }) => (
        <label key={name}>
          {name} <span class="soft">{location}</span>
          {required ? <span class="required"> required</span> : null}
          <input
            value={values[name] ?? ""}
            onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
          />
        </label>
      ))}
      {request.body === null ? null : (
        <label>
          Body
          <textarea spellcheck={false} value={body} onInput={(event) => setBody(event.currentTarget.value)} />
        </label>
      )}
      {isUpload ? <p>A file is sent as a form. Use the line below, with the field of the form.</p> : null}
      <pre tabIndex={0} aria-label={`${operationId} for a shell`}>
        <code>{curlOf(request)}</code>
      </pre>
      <button
        type="button"
        disabled={isUpload}
        onClick={() => (isRunning ? activeRequest.current?.abort() : void send())}
      >
        {isRunning ? "Stop" : "Send"}
      </button>
      <div role="status">{answer === null ? "" : answer.status}</div>
      {answer === null ? null : (
        <pre tabIndex={0} aria-label="Answer">
          <code>{answer.text}</code>
        </pre>
      )}
    </details>
  )
}
