/** Signing in. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { type FormEvent, useEffect, useState } from "react"
import { ApiError } from "../api/Client.ts"
import { session, signIn } from "../api/Session.ts"
import { Button } from "../components/Button.tsx"
import { TextField } from "../components/Field.tsx"
import { Problem } from "../components/Problem.tsx"
import { texts, useText } from "../text/Language.tsx"
import mark from "../mark.svg"
import css from "./SignIn.module.css"

const words = texts(
  {
    title: "Sign in",
    email: "E-mail",
    password: "Password",
    wrong: "The e-mail address or the password is wrong.",
    often: "Too many attempts. Please wait fifteen minutes and try again.",
    first: "On a first start the address and the password are printed in the terminal."
  },
  {
    title: "Anmelden",
    email: "E-Mail",
    password: "Passwort",
    wrong: "Die E-Mail-Adresse oder das Passwort ist falsch.",
    often: "Zu viele Versuche. Bitte eine Viertelstunde warten und dann noch einmal versuchen.",
    first: "Beim ersten Start stehen Adresse und Passwort im Terminal."
  }
)

const isStatus = (problem: unknown, status: number) =>
  problem instanceof ApiError && problem.status === status

export const SignIn = () => {
  const t = useText(words)
  const queries = useQueryClient()
  const [email, setEmail] = useState("")
  const [password, setPassword] = useState("")
  const attempt = useMutation({
    mutationFn: () => signIn(email, password),
    onSuccess: ({ user }) => queries.setQueryData(session.queryKey, user)
  })
  useEffect(() => {
    document.title = `${t.title} · Spoke`
  }, [t.title])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    attempt.mutate()
  }
  return (
    <main className={css["place"]}>
      <form className={css["form"]} onSubmit={submit}>
        <img src={mark} alt="" width={40} height={40} />
        <h1>{t.title}</h1>
        {attempt.error === null ? null : (
          <Problem
            problem={attempt.error}
            sentence={
              isStatus(attempt.error, 401) ? t.wrong : isStatus(attempt.error, 429) ? t.often : undefined
            }
          />
        )}
        <TextField
          label={t.email}
          type="email"
          name="email"
          autoComplete="username"
          isRequired
          autoFocus
          value={email}
          onChange={setEmail}
        />
        <TextField
          label={t.password}
          type="password"
          name="password"
          autoComplete="current-password"
          isRequired
          value={password}
          onChange={setPassword}
        />
        <Button kind="primary" type="submit" busy={attempt.isPending}>
          {t.title}
        </Button>
        <p className={css["hint"]}>{t.first}</p>
      </form>
    </main>
  )
}
