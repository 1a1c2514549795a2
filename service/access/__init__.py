"""Who may do what: keys, hashed at rest, with scopes and an end."""
