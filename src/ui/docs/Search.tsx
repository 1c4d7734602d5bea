/** @jsxImportSource preact */
/** Searches the documentation. Its index is loaded when the field is first used. */
import { useEffect, useRef, useState } from "preact/hooks"
import { find, type Section } from "./Find.ts"

const maxPreview = 120

const load = async (): Promise<ReadonlyArray<Section>> => {
  const answer = await fetch("/docs/search.json")
  if (!answer.ok) throw new Error(`The search answered ${answer.status}.`)
  return answer.json()
}

export const Search = () => {
  const [sections, setSections] = useState<ReadonlyArray<Section> | null>(null)
  const [failed, setFailed] = useState(false)
  const [question, setQuestion] = useState("")
  const field = useRef<HTMLInputElement>(null)
  const list = useRef<HTMLUListElement>(null)

  const isAsked = useRef(false)
  /** Loads the index once. After a failure the next letter asks for it again. */
  const prepare = () => {
    if (isAsked.current) return
    isAsked.current = true
    setFailed(false)
    load().then(setSections, () => {
      isAsked.current = false
      setFailed(true)
    })
  }
  useEffect(() => {
    const jump = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof Element && event.target.closest("input, textarea") !== null
      if (event.key !== "/" || isTyping) return
      event.preventDefault()
      field.current?.focus()
    }
    document.addEventListener("keydown", jump)
    return () => document.removeEventListener("keydown", jump)
  }, [])

  const found = sections === null ? [] : find(sections, question)
  const isOpen = question.trim() !== ""
  const state = failed
    ? "The search could not be loaded. Type again to retry."
    : sections === null
      ? "Loading …"
      : found.length === 0
        ? "Nothing found. Try fewer words."
        : ""

  /** Moves the focus between the field and the results. */
  const move = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      setQuestion("")
      field.current?.focus()
      return
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return
    event.preventDefault()
    const places = [field.current, ...(list.current?.querySelectorAll("a") ?? [])]
    const now = places.findIndex((place) => place === document.activeElement)
    places[now + (event.key === "ArrowDown" ? 1 : -1)]?.focus()
  }

  return (
    <div onKeyDown={move} role="search">
      <input
        ref={field}
        type="search"
        aria-label="Search the documentation"
        placeholder="Search the documentation ( / )"
        value={question}
        onFocus={prepare}
        onInput={(event) => {
          prepare()
          setQuestion(event.currentTarget.value)
        }}
      />
      <div role="status" hidden={!isOpen || state === ""} class="results">
        {isOpen ? state : ""}
      </div>
      {isOpen && found.length > 0 ? (
        <ul ref={list} class="results" aria-label="Results">
          {found.map(({ heading, href, page, text }) => (
            <li key={href}>
              <a href={href} onClick={() => setQuestion("")}>
                {heading}
                <small>
                  {page} · {text.slice(0, maxPreview)}
                </small>
              </a>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  )
}
