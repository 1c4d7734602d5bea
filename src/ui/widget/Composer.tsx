/** @jsxImportSource preact */
import type { RefObject } from "preact"
import { useRef, useState } from "preact/hooks"
import type { Chat } from "./Chat.ts"
import type { Draft } from "./Draft.ts"
import { acceptedTypes, isTooLong } from "../MessageLimits.ts"
import { isComposing, pastedFiles } from "../inputEvents.ts"
import { Icon } from "./Icon.tsx"
import { Thumbnail } from "./Thumbnail.tsx"
import type { View } from "./View.ts"

export const Composer = ({
  chat,
  field,
  view
}: {
  readonly chat: Chat
  readonly field: RefObject<HTMLTextAreaElement | null>
  readonly view: View
}) => {
  const { texts } = chat
  // Re-renders the composer alone while the visitor types.
  const [, setDraft] = useState(chat.draft)
  const { files, text } = chat.draft
  const isShortAgain = view.draftProblem === texts.long && !isTooLong(text.trim())
  const problem = isShortAgain ? null : view.draftProblem
  const picker = useRef<HTMLInputElement>(null)
  const changeDraft = (change: Partial<Draft>) => {
    chat.draft = { ...chat.draft, ...change }
    setDraft(chat.draft)
  }
  const send = () => {
    chat.sendDraft()
    field.current?.focus()
  }
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {files.length > 0 && (
        <ul class="files">
          {files.map((file, index) => (
            <li key={`${index}-${file.name}`}>
              {file.type.startsWith("image/") ? <Thumbnail blob={file} /> : <Icon name="attach" />}
              <span>{file.name}</span>
              <button
                type="button"
                class="icon"
                aria-label={texts.remove(file.name)}
                onClick={() => changeDraft({ files: files.filter((other) => other !== file) })}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="line">
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          accept={acceptedTypes}
          aria-label={texts.attach}
          onChange={(event) => {
            chat.addFiles([...(event.currentTarget.files ?? [])])
            event.currentTarget.value = ""
          }}
        />
        <button type="button" class="icon" aria-label={texts.attach} onClick={() => picker.current?.click()}>
          <Icon name="attach" />
        </button>
        <textarea
          ref={field}
          rows={1}
          dir="auto"
          enterkeyhint="send"
          aria-label={texts.message}
          placeholder={texts.placeholder}
          value={text}
          onInput={(event) => {
            changeDraft({ text: event.currentTarget.value })
            chat.visitorTypes()
          }}
          onPaste={(event) => {
            const pasted = pastedFiles(event.clipboardData)
            if (pasted.length === 0) return
            event.preventDefault()
            chat.addFiles(pasted)
          }}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return
            event.preventDefault()
            send()
          }}
        />
        <button
          type="submit"
          class="icon send"
          aria-label={texts.send}
          aria-disabled={text.trim() === "" || view.live !== null}
        >
          <Icon name="send" />
        </button>
      </div>
    </form>
  )
}
