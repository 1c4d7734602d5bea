/** The team's canned replies: create and delete. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useState } from "react"
import { addReply, inboxItems, removeReply } from "../../api/Inbox.ts"
import { Button } from "../../components/Button.tsx"
import { Actions, Dialog } from "../../components/Dialog.tsx"
import { TextArea, TextField } from "../../components/Field.tsx"
import { Problem } from "../../components/Problem.tsx"
import { texts, useText } from "../../text/Language.tsx"
import css from "./CannedReplies.module.css"

const words = texts(
  {
    title: "Canned replies",
    lead: "Type / and the beginning of a name while you reply.",
    shortcut: "Name",
    shortcutHelp: "Letters, digits, - and _.",
    content: "Text",
    contentHelp: "{{name}} stands for what the customer is called.",
    add: "Add",
    remove: (name: string) => `Delete ${name}`
  },
  {
    title: "Textbausteine",
    lead: "Beim Antworten / und den Anfang eines Namens tippen.",
    shortcut: "Name",
    shortcutHelp: "Buchstaben, Ziffern, - und _.",
    content: "Text",
    contentHelp: "{{name}} steht für den Namen des Kunden.",
    add: "Hinzufügen",
    remove: (name: string) => `${name} löschen`
  }
)

const Form = () => {
  const t = useText(words)
  const queries = useQueryClient()
  const { data } = useQuery(inboxItems)
  const [shortcut, setShortcut] = useState("")
  const [content, setContent] = useState("")
  const refresh = () => queries.invalidateQueries({ queryKey: inboxItems.queryKey })
  const add = useMutation({
    mutationFn: () => addReply(shortcut.trim(), content.trim()),
    onSuccess: () => {
      setShortcut("")
      setContent("")
      return refresh()
    }
  })
  const remove = useMutation({ mutationFn: removeReply, onSettled: refresh })
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  const problem = add.error ?? remove.error
  return (
    <form className={css["form"]} onSubmit={onSubmit}>
      <p>{t.lead}</p>
      {data === undefined || data.replies.length === 0 ? null : (
        <ul className={css["replies"]} aria-label={t.title}>
          {data.replies.map((reply) => (
            <li key={reply.id}>
              <strong>/{reply.shortcut}</strong>
              <span>{reply.content}</span>
              <Button
                kind="quiet"
                icon
                aria-label={t.remove(reply.shortcut)}
                onClick={() => remove.mutate(reply.id)}
              >
                ×
              </Button>
            </li>
          ))}
        </ul>
      )}
      <TextField
        label={t.shortcut}
        help={t.shortcutHelp}
        required
        pattern="[\p{L}\p{N}_\-]+"
        maxLength={40}
        value={shortcut}
        onChange={setShortcut}
      />
      <TextArea
        label={t.content}
        help={t.contentHelp}
        required
        maxLength={4_000}
        value={content}
        onChange={setContent}
      />
      {problem === null ? null : <Problem problem={problem} />}
      <Actions>
        <Button kind="primary" type="submit" busy={add.isPending}>
          {t.add}
        </Button>
      </Actions>
    </form>
  )
}

export const CannedReplies = () => {
  const t = useText(words)
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <Button kind="quiet" onClick={() => setOpen(true)}>
        {t.title}
      </Button>
      <Dialog title={t.title} isOpen={isOpen} onClose={() => setOpen(false)}>
        <Form />
      </Dialog>
    </>
  )
}
