/** The page of an invitation, to choose a password. The token is after the `#`, so that no server logs it. */
import { useMutation } from "@tanstack/react-query"
import { type FormEvent, useEffect, useState } from "react"
import { useLocation } from "wouter"
import { ApiError } from "../../api/Client.ts"
import { choosePassword } from "../../api/Team.ts"
import { Button } from "../../components/Button.tsx"
import { TextField } from "../../components/Field.tsx"
import { Problem } from "../../components/Problem.tsx"
import { useIssues } from "../../forms/useIssues.ts"
import { texts, useText } from "../../text/Language.tsx"
import mark from "../../mark.svg"
import css from "../SignIn.module.css"

const words = texts(
  {
    title: "Welcome",
    lead: "Choose a password, then sign in with it.",
    password: "New password",
    help: "At least 12 characters.",
    choose: "Choose password",
    spent: "The invitation has been used or is over. Whoever invited you can make a new link."
  },
  {
    title: "Willkommen",
    lead: "Ein Passwort wählen und dann damit anmelden.",
    password: "Neues Passwort",
    help: "Mindestens 12 Zeichen.",
    choose: "Passwort wählen",
    spent:
      "Die Einladung wurde schon benutzt oder ist abgelaufen. Wer Sie eingeladen hat, kann einen neuen Link machen."
  }
)

export const Welcome = () => {
  const t = useText(words)
  const [, navigate] = useLocation()
  const [token] = useState(() => location.hash.slice(1))
  const [password, setPassword] = useState("")
  const choose = useMutation({
    mutationFn: () => choosePassword(token, password),
    onSuccess: () => navigate("/agents", { replace: true })
  })
  const { errorOf, general } = useIssues(choose.error, ["password"])
  useEffect(() => {
    document.title = `${t.title} · Spoke`
  }, [t.title])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    choose.mutate()
  }
  return (
    <main className={css["place"]}>
      <form className={css["form"]} onSubmit={submit}>
        <img src={mark} alt="" width={40} height={40} />
        <h1>{t.title}</h1>
        <p className={css["hint"]}>{t.lead}</p>
        {general === null ? null : (
          <Problem
            problem={general}
            sentence={choose.error instanceof ApiError && choose.error.status === 401 ? t.spent : undefined}
          />
        )}
        <TextField
          label={t.password}
          help={t.help}
          type="password"
          autoComplete="new-password"
          required
          autoFocus
          value={password}
          onChange={setPassword}
          error={errorOf("password")}
        />
        <Button kind="primary" type="submit" busy={choose.isPending}>
          {t.choose}
        </Button>
      </form>
    </main>
  )
}
