"""The routes by which programs attach that were written for the API of OpenAI."""
